//! What the machine itself shows: GPUs on its bus, device nodes, the user, limits, the cache folder.

use std::fs;
use std::path::Path;

use rocm_device_map::{cache as library_cache, diagnosis};
use serde::Serialize;

use crate::output::Failure;

/// A GPU on the PCI bus, whether or not anything can use it.
#[derive(Clone, Debug, Serialize)]
pub struct Gpu {
    pub address: String,
    /// `amd` or `nvidia`.
    pub vendor: &'static str,
    /// The vendor's number for the chip, such as `0x744c`.
    pub chip: String,
    /// The kernel's driver that has it, such as `amdgpu`.
    pub kernel_driver: Option<String>,
}

/// None where the kernel does not show its bus.
pub fn gpus() -> Option<Vec<Gpu>> {
    gpus_in(Path::new("/sys/bus/pci/devices"))
}

fn gpus_in(bus: &Path) -> Option<Vec<Gpu>> {
    let mut found: Vec<Gpu> = fs::read_dir(bus)
        .ok()?
        .filter_map(|entry| gpu_at(&entry.ok()?.path()))
        .collect();
    found.sort_by(|one, other| one.address.cmp(&other.address));
    Some(found)
}

fn gpu_at(path: &Path) -> Option<Gpu> {
    let read = |name: &str| -> Option<String> {
        Some(fs::read_to_string(path.join(name)).ok()?.trim().to_owned())
    };
    let vendor = match read("vendor")?.as_str() {
        "0x1002" => "amd",
        "0x10de" => "nvidia",
        _ => return None,
    };
    // Display controllers, and processing accelerators, which have no display.
    let class = read("class")?;
    if !class.starts_with("0x03") && !class.starts_with("0x12") {
        return None;
    }
    Some(Gpu {
        address: path.file_name()?.to_string_lossy().into_owned(),
        vendor,
        chip: read("device")?,
        kernel_driver: fs::read_link(path.join("driver"))
            .ok()
            .and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
    })
}

#[derive(Clone, Debug, Serialize)]
pub struct Permission {
    pub path: String,
    pub driver: String,
    pub exists: bool,
    /// As `chmod` takes it, such as `0660`; none where the node does not exist.
    pub mode: Option<String>,
    pub group: Option<String>,
    /// Whether this process may open it, as mode and owner say.
    pub accessible: bool,
    /// Why not, and the remedy.
    pub problem: Option<String>,
}

pub fn permissions() -> Result<Vec<Permission>, Failure> {
    let nodes = diagnosis::device_nodes()?;
    Ok(nodes
        .into_iter()
        .map(|node| {
            let found = node.found.as_ref();
            Permission {
                path: node.path.to_string_lossy().into_owned(),
                driver: node.driver,
                exists: found.is_some(),
                mode: found.map(|found| format!("{:04o}", found.mode)),
                group: found.map(|found| found.group.clone()),
                accessible: found.is_some_and(|found| found.problem.is_none()),
                problem: found.and_then(|found| found.problem.clone()),
            }
        })
        .collect())
}

/// The user that this process runs as, and the groups that it has now.
#[derive(Clone, Debug, Default, Serialize)]
pub struct User {
    pub id: Option<u32>,
    pub groups: Vec<String>,
}

pub fn user() -> User {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let names = fs::read_to_string("/etc/group").unwrap_or_default();
    let numbers = |field: &str| -> Vec<u32> {
        status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .map(|rest| {
                rest.split_whitespace()
                    .filter_map(|text| text.parse().ok())
                    .collect()
            })
            .unwrap_or_default()
    };
    // Real, effective, saved, file system: the effective one decides.
    let mut groups: Vec<u32> = numbers("Gid:").get(1).copied().into_iter().collect();
    for group in numbers("Groups:") {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    User {
        id: numbers("Uid:").get(1).copied(),
        groups: groups
            .into_iter()
            .map(|group| group_name(&names, group))
            .collect(),
    }
}

fn group_name(names: &str, group: u32) -> String {
    names
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(group)).then(|| name.to_owned())
        })
        .unwrap_or_else(|| group.to_string())
}

#[derive(Clone, Debug, Serialize)]
pub struct Cache {
    pub enabled: bool,
    pub path: String,
    pub entry_count: u64,
    pub size_bytes: u64,
    pub limit_bytes: u64,
    pub problem: Option<String>,
}

pub fn cache() -> Result<Cache, Failure> {
    let info = library_cache::info()?;
    Ok(Cache {
        enabled: info.enabled,
        path: info.path.to_string_lossy().into_owned(),
        entry_count: info.entry_count,
        size_bytes: info.size_bytes,
        limit_bytes: info.limit_bytes,
        problem: info.problem,
    })
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Limits {
    /// How large a core dump may be: `0`, a number of bytes, or `unlimited`; none where the kernel does
    /// not tell.
    pub core_dump: Option<String>,
}

pub fn limits() -> Limits {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    Limits {
        core_dump: limits
            .lines()
            .find_map(|line| line.strip_prefix("Max core file size"))
            .and_then(|rest| rest.split_whitespace().next())
            .map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_shows_its_gpus_and_nothing_else() {
        let bus = std::env::temp_dir().join(format!("rdm-doctor-bus-{}", std::process::id()));
        let add = |address: &str, vendor: &str, class: &str, driver: Option<&str>| {
            let device = bus.join(address);
            fs::create_dir_all(&device).expect("a folder can be made");
            for (name, text) in [("vendor", vendor), ("class", class), ("device", "0x744c")] {
                fs::write(device.join(name), format!("{text}\n")).expect("a file can be written");
            }
            if let Some(driver) = driver {
                let target = format!("../../../bus/pci/drivers/{driver}");
                std::os::unix::fs::symlink(target, device.join("driver")).expect("a link");
            }
        };
        add("0000:41:00.0", "0x10de", "0x030200", Some("nvidia"));
        add("0000:03:00.0", "0x1002", "0x030000", Some("amdgpu"));
        add("0000:03:00.1", "0x1002", "0x040300", Some("snd_hda_intel"));
        add("0000:83:00.0", "0x1002", "0x120000", None);
        add("0000:00:00.0", "0x8086", "0x030000", Some("i915"));
        let found = gpus_in(&bus).expect("the folder can be read");
        fs::remove_dir_all(&bus).expect("the folder can be removed");
        let told: Vec<_> = found
            .iter()
            .map(|gpu| {
                (
                    gpu.address.as_str(),
                    gpu.vendor,
                    gpu.kernel_driver.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("0000:03:00.0", "amd", Some("amdgpu")),
                ("0000:41:00.0", "nvidia", Some("nvidia")),
                ("0000:83:00.0", "amd", None),
            ]
        );
        assert!(gpus_in(&bus).is_none());
    }

    #[test]
    fn a_group_without_a_name_is_its_number() {
        let names = "root:x:0:\nvideo:x:44:someone\n";
        assert_eq!(group_name(names, 44), "video");
        assert_eq!(group_name(names, 109), "109");
    }
}
