//! The variables that say which devices a process sees, and what they select.

use serde::Serialize;

/// Which of them isolate: the runtime attaches to no GPU that they hide.
pub const MASKS: [Mask; 4] = [
    Mask {
        name: "ROCR_VISIBLE_DEVICES",
        drivers: &["hip"],
        isolates: &["hip"],
        takes_uuids: true,
    },
    Mask {
        name: "HIP_VISIBLE_DEVICES",
        drivers: &["hip"],
        isolates: &[],
        takes_uuids: false,
    },
    Mask {
        name: "CUDA_VISIBLE_DEVICES",
        drivers: &["hip", "cuda"],
        isolates: &["cuda"],
        takes_uuids: true,
    },
    Mask {
        name: "GPU_DEVICE_ORDINAL",
        drivers: &["hip"],
        isolates: &[],
        takes_uuids: false,
    },
];

pub struct Mask {
    pub name: &'static str,
    /// The drivers that heed it, where they are built in.
    pub drivers: &'static [&'static str],
    pub isolates: &'static [&'static str],
    takes_uuids: bool,
}

/// What a mask's text selects, in the order of the device indices that a process sees.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Selection {
    pub devices: Vec<String>,
    /// The drivers that heed the mask.
    pub drivers: Vec<&'static str>,
    /// Of these, those that attach to no GPU that it hides.
    pub isolates: Vec<&'static str>,
    /// The first part that names no device. A runtime ignores all from there on.
    pub stops_at: Option<String>,
    /// Whether anything that looks like a device comes after that, or is named twice.
    pub loses_devices: bool,
}

impl Selection {
    /// The greatest index that it names.
    pub fn greatest_index(&self) -> Option<u32> {
        self.devices
            .iter()
            .filter_map(|part| part.parse().ok())
            .max()
    }
}

impl Mask {
    fn names_a_device(&self, part: &str) -> bool {
        is_index(part)
            || (self.takes_uuids
                && ["GPU-", "MIG-"]
                    .iter()
                    .any(|prefix| part.len() > prefix.len() && part.starts_with(prefix)))
    }

    pub fn select(&self, text: &str) -> Selection {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let stop = parts
            .iter()
            .position(|part| !self.names_a_device(part))
            .unwrap_or(parts.len());
        let devices: Vec<String> = parts[..stop].iter().map(|&part| part.to_owned()).collect();
        let twice = devices
            .iter()
            .enumerate()
            .any(|(place, device)| devices[..place].contains(device));
        // "" and "-1" alone are the ways to ask for none, and "-1" to end a list.
        let stops_on_purpose = parts[stop..] == [""] || parts[stop..] == ["-1"];
        Selection {
            loses_devices: twice || (stop < parts.len() && !stops_on_purpose),
            stops_at: parts.get(stop).map(|&part| part.to_owned()),
            devices,
            drivers: self.drivers.to_vec(),
            isolates: self.isolates.to_vec(),
        }
    }

    /// What the mask does, as a clause.
    pub fn describe(&self, selection: &Selection) -> String {
        let what = match selection.devices.as_slice() {
            [] => "selects no device".to_owned(),
            [device] => format!("selects device {device} alone"),
            devices => format!("selects devices {} in this order", devices.join(", ")),
        };
        let effect = match self.name {
            "ROCR_VISIBLE_DEVICES" => "AMD's runtime attaches to no other: it isolates",
            "CUDA_VISIBLE_DEVICES" => {
                "on NVIDIA the others get no context; on AMD they are hidden, and the runtime \
                 attaches to them all the same"
            }
            _ => "the others are hidden, and AMD's runtime attaches to them all the same",
        };
        format!("{what}; {effect}")
    }
}

fn is_index(part: &str) -> bool {
    !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(name: &str, text: &str) -> Selection {
        let mask = MASKS.iter().find(|mask| mask.name == name);
        mask.expect("a mask").select(text)
    }

    #[test]
    fn a_list_ends_at_the_first_part_that_names_no_device() {
        for (name, text, devices, stops_at, loses) in [
            ("HIP_VISIBLE_DEVICES", "0", &["0"][..], None, false),
            ("HIP_VISIBLE_DEVICES", "2, 0", &["2", "0"], None, false),
            ("HIP_VISIBLE_DEVICES", "", &[], Some(""), false),
            ("HIP_VISIBLE_DEVICES", "-1", &[], Some("-1"), false),
            ("HIP_VISIBLE_DEVICES", "0,-1", &["0"], Some("-1"), false),
            ("HIP_VISIBLE_DEVICES", "0,-1,1", &["0"], Some("-1"), true),
            ("HIP_VISIBLE_DEVICES", "0,x,1", &["0"], Some("x"), true),
            ("HIP_VISIBLE_DEVICES", "0,0", &["0", "0"], None, true),
            ("HIP_VISIBLE_DEVICES", "0;1", &[], Some("0;1"), true),
            ("HIP_VISIBLE_DEVICES", "GPU-a1", &[], Some("GPU-a1"), true),
            (
                "ROCR_VISIBLE_DEVICES",
                "GPU-a1,1",
                &["GPU-a1", "1"],
                None,
                false,
            ),
            (
                "CUDA_VISIBLE_DEVICES",
                "MIG-7,0",
                &["MIG-7", "0"],
                None,
                false,
            ),
            ("CUDA_VISIBLE_DEVICES", "GPU-", &[], Some("GPU-"), true),
        ] {
            let selection = select(name, text);
            assert_eq!(selection.devices, devices, "{name}={text}");
            assert_eq!(selection.stops_at.as_deref(), stops_at, "{name}={text}");
            assert_eq!(selection.loses_devices, loses, "{name}={text}");
        }
    }

    #[test]
    fn only_what_hides_a_gpu_from_the_runtime_itself_isolates() {
        assert_eq!(select("ROCR_VISIBLE_DEVICES", "0").isolates, ["hip"]);
        assert!(select("HIP_VISIBLE_DEVICES", "0").isolates.is_empty());
        assert_eq!(select("CUDA_VISIBLE_DEVICES", "0").isolates, ["cuda"]);
        assert!(select("GPU_DEVICE_ORDINAL", "0").isolates.is_empty());
        assert_eq!(
            select("ROCR_VISIBLE_DEVICES", "3,7,5").greatest_index(),
            Some(7)
        );
    }
}
