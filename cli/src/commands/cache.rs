//! `rdm cache`: the compiled kernels on disk.

use std::io::IsTerminal;
use std::process::ExitCode;

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use rocm_device_map::cache::{self, CacheEntry, CacheInfo};
use serde::Serialize;

use crate::output::{Failure, write, write_json};

/// Shows, checks and empties the cache of compiled kernels on disk.
///
/// It is at RDM_CACHE_DIR where that is set (empty: no cache), else in rocm-device-map below
/// XDG_CACHE_HOME or ~/.cache. It holds at most RDM_CACHE_MAX_BYTES, 1 GiB where that is not set.
/// Processes that use it meanwhile are not disturbed.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show where it is, how many kernels it holds and how large they are
    Show {
        /// Print one JSON object to standard output
        #[arg(long)]
        json: bool,
    },
    /// Read every kernel and say which are damaged; exit with 1 where damaged ones stay
    Check {
        /// Remove those that are damaged
        #[arg(long)]
        remove: bool,
        /// Print one JSON object to standard output
        #[arg(long)]
        json: bool,
    },
    /// Remove the least recently used kernels until the rest fit
    Prune {
        /// How much may stay, such as 300M or 2G [default: RDM_CACHE_MAX_BYTES]
        #[arg(long, value_name = "SIZE", value_parser = size)]
        to: Option<u64>,
        /// Print one JSON object to standard output
        #[arg(long)]
        json: bool,
    },
    /// Remove all kernels
    Clear {
        /// Print one JSON object to standard output
        #[arg(long)]
        json: bool,
    },
}

/// A number of bytes, or of K, M, G or T of 1024 each.
fn size(text: &str) -> Result<u64, String> {
    let complaint =
        || "it is a whole number of bytes, or one with K, M, G or T behind it".to_owned();
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        "T" | "TIB" => 1u64 << 40,
        _ => return Err(complaint()),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| complaint())?;
    match number.checked_mul(factor) {
        Some(bytes) if is_number => Ok(bytes),
        _ => Err(complaint()),
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Show { json } => show(json),
        Command::Check { remove, json } => check(remove, json),
        Command::Prune { to, json } => prune(to, json),
        Command::Clear { json } => prune(Some(0), json),
    }
}

#[derive(Serialize)]
struct ShowReport {
    enabled: bool,
    path: String,
    problem: Option<String>,
    entries: u64,
    size_bytes: u64,
    limit_bytes: u64,
}

fn show(json: bool) -> Result<ExitCode, Failure> {
    let info = cache::info()?;
    let report = ShowReport {
        enabled: info.enabled,
        path: info.path.display().to_string(),
        problem: info.problem.clone(),
        entries: info.entry_count,
        size_bytes: info.size_bytes,
        limit_bytes: info.limit_bytes,
    };
    if json {
        write_json(&report)?;
    } else {
        write(&summary(&info))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn kernels(count: u64) -> String {
    match count {
        1 => "1 kernel".to_owned(),
        count => format!("{count} kernels"),
    }
}

fn summary(info: &CacheInfo) -> String {
    if !info.enabled {
        let problem = info.problem.as_deref().unwrap_or("for no reason known");
        return format!("no cache on disk: {problem}\n");
    }
    let mut text = format!(
        "{}\n{}, {} of at most {}\n",
        info.path.display(),
        kernels(info.entry_count),
        HumanBytes(info.size_bytes),
        HumanBytes(info.limit_bytes)
    );
    if let Some(problem) = &info.problem {
        text.push_str(&format!("{problem}\n"));
    }
    text
}

/// What there is; a failure where the cache can not be used. None where the folder is yet to be made.
fn usable() -> Result<Option<CacheInfo>, Failure> {
    let info = cache::info()?;
    if !info.enabled {
        let problem = info.problem.unwrap_or_default();
        return Err(Failure::new(format!("no cache on disk: {problem}")));
    }
    Ok(info.path.exists().then_some(info))
}

#[derive(Serialize, Default)]
struct CheckReport {
    entries: u64,
    size_bytes: u64,
    damaged: Vec<String>,
    removed: bool,
}

fn check(remove: bool, json: bool) -> Result<ExitCode, Failure> {
    let mut report = CheckReport {
        removed: remove,
        ..CheckReport::default()
    };
    if let Some(info) = usable()? {
        let bar = progress_bar(info.size_bytes);
        cache::check(remove, |entry: &CacheEntry| {
            report.entries += 1;
            report.size_bytes += entry.size_bytes;
            if !entry.is_valid {
                report.damaged.push(entry.name.clone());
            }
            bar.set_position(report.size_bytes);
        })?;
        bar.finish_and_clear();
    }
    let is_well = report.damaged.is_empty() || remove;
    if json {
        write_json(&report)?;
    } else {
        for name in &report.damaged {
            let removed = if remove { ", removed" } else { "" };
            write(&format!("{name}: damaged{removed}\n"))?;
        }
        write(&format!(
            "{}, {}; {} damaged\n",
            kernels(report.entries),
            HumanBytes(report.size_bytes),
            report.damaged.len()
        ))?;
    }
    Ok(ExitCode::from(u8::from(!is_well)))
}

fn progress_bar(bytes: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}") {
        bar.set_style(style);
    }
    bar
}

#[derive(Serialize)]
struct PruneReport {
    removed: u64,
    removed_bytes: u64,
    entries: u64,
    size_bytes: u64,
}

fn prune(to: Option<u64>, json: bool) -> Result<ExitCode, Failure> {
    let mut report = PruneReport {
        removed: 0,
        removed_bytes: 0,
        entries: 0,
        size_bytes: 0,
    };
    if let Some(before) = usable()? {
        let pruned = cache::prune(to.unwrap_or(before.limit_bytes))?;
        let after = cache::info()?;
        if pruned.entry_count == 0 && to == Some(0) && after.entry_count > 0 {
            let problem = after.problem.unwrap_or_default();
            return Err(Failure::new(format!("nothing could be removed: {problem}")));
        }
        report = PruneReport {
            removed: pruned.entry_count,
            removed_bytes: pruned.size_bytes,
            entries: after.entry_count,
            size_bytes: after.size_bytes,
        };
    }
    if json {
        write_json(&report)?;
    } else {
        write(&format!(
            "removed {}, {}; {} left, {}\n",
            kernels(report.removed),
            HumanBytes(report.removed_bytes),
            report.entries,
            HumanBytes(report.size_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_strictly() {
        for (text, bytes) in [
            ("0", 0),
            ("12", 12),
            ("3K", 3 << 10),
            ("300M", 300 << 20),
            ("2GiB", 2 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "K",
            "-1",
            "+1",
            "1.5G",
            " 1",
            "1 G",
            "1X",
            "99999999999999999999",
            "18446744073709551615K",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
