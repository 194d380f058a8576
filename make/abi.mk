# The ABI: what is committed of it, what is installed, and programs outside the tree that use it.

#: abi-check      the shared library against the committed ABI: symbols, types, layouts; and that the check can fail
#: abi-update     commits what was added to the ABI: abi/symbols.txt, abi/layout.txt, abi/librocm_device_map.abi
#: install        header, libraries and pkg-config file, under DESTDIR and PREFIX (/usr/local); also uninstall
#: consumers      a C11, a C++17 and a Rust program outside the tree, built with what is installed, and run

.PHONY: abi-check abi-update install uninstall consumers

abi-check: lib
	abi/check.sh $(CC) $(SHARED_LIBRARY) csrc/include abi $(BUILD)/abi
	tests/abi/check_layout.sh $(CC) $(CXX) $(BUILD)/abi/layout
	tests/abi/check_breaks.sh $(CC) $(BUILD)

abi-update: lib
	abi/update.sh $(CC) $(SHARED_LIBRARY) csrc/include abi $(BUILD)/abi

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
INSTALL ?= install

install: lib
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)' '$(DESTDIR)$(PKGCONFIGDIR)'
	$(INSTALL) -m 644 csrc/include/rocm_device_map.h '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 $(STATIC_LIBRARY) '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 755 $(SHARED_LIBRARY).$(VERSION) '$(DESTDIR)$(LIBDIR)'
	ln -sf librocm_device_map.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/librocm_device_map.so'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	  -e 's|@VERSION@|$(VERSION)|' csrc/rocm-device-map.pc.in > '$(DESTDIR)$(PKGCONFIGDIR)/rocm-device-map.pc'
	chmod 644 '$(DESTDIR)$(PKGCONFIGDIR)/rocm-device-map.pc'

# The files, not the folders: others may have something there.
uninstall:
	rm -f '$(DESTDIR)$(INCLUDEDIR)/rocm_device_map.h' '$(DESTDIR)$(PKGCONFIGDIR)/rocm-device-map.pc' \
	  '$(DESTDIR)$(LIBDIR)/librocm_device_map.a' '$(DESTDIR)$(LIBDIR)/librocm_device_map.so' \
	  '$(DESTDIR)$(LIBDIR)/$(SONAME)' '$(DESTDIR)$(LIBDIR)/librocm_device_map.so.$(VERSION)'

consumers: lib
	CC='$(CC)' CXX='$(CXX)' CARGO='$(CARGO)' MAKE='$(MAKE)' tests/consumers/run.sh '$(BUILD)'

VERIFY_ROCM += abi-check consumers
