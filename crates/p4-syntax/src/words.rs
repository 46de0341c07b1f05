//! Hints for names of other models and languages, and for misspelled names.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::library;

/// Name of this model's package.
pub const PACKAGE: &str = "ubpf";

/// The instantiation of `main` in this model.
pub const MAIN: &str = "`ubpf(parse(), pipeline(), deparser()) main;`";

/// Returns the known name that is most similar to `name`, if any is similar enough.
pub fn closest(name: &str, known: impl Iterator<Item = Arc<str>>) -> Option<Arc<str>> {
    // Comparing two names takes time in proportion to the product of their lengths.
    let length = |name: &str| Some(name.chars().take(65).count()).filter(|&long| long <= 64);
    let long = length(name)?;
    let far = (long / 3).max(1);
    let near = known.filter_map(|one| {
        length(&one).filter(|other| other.abs_diff(long) <= far)?;
        let distance = strsim::damerau_levenshtein(name, &one);
        (distance <= far).then_some((distance, one))
    });
    near.min().map(|(_, one)| one)
}

/// Returns the known word that is most similar to `name`.
pub fn closest_word(name: &str, known: &[&str]) -> Option<Arc<str>> {
    closest(name, known.iter().map(|&one| one.into()))
}

/// Returns the type that is meant by a misspelled name, or by a type name of another language.
pub(crate) fn meant_type(name: &str) -> Option<String> {
    let plain = name.trim_end_matches("_t");
    let digits = plain.trim_start_matches(|c: char| !c.is_ascii_digit());
    let width = if digits.is_empty() { "8" } else { digits };
    let known = width.len() <= 4 && width.bytes().all(|byte| byte.is_ascii_digit());
    Some(match plain[..plain.len() - digits.len()].to_ascii_lowercase().as_str() {
        "bits" | "bit" | "uint" | "u" if known && (!digits.is_empty() || name.len() > 1) => {
            format!("bit<{width}>")
        }
        "int" | "ints" | "i" | "s" if known && !digits.is_empty() => format!("int<{width}>"),
        "byte" | "char" | "uchar" => "bit<8>".to_owned(),
        "short" | "ushort" => "bit<16>".to_owned(),
        "unsigned" | "long" | "ulong" | "var" | "let" | "auto" => "bit<32>".to_owned(),
        "boolean" => "bool".to_owned(),
        "standard_metadata" if plain != name => plain.to_owned(),
        _ => return None,
    })
}

/// Counterparts in this model of names in other models.
const COUNTERPARTS: [(&[&str], &str); 19] = [
    (
        &["V1Switch", "xdp", "ebpfFilter", "PSA_Switch", "PNA_NIC", "Switch", "Pipeline"],
        "this model's package is `ubpf(parse(), pipeline(), deparser()) main;`",
    ),
    (
        &["drop", "drop_packet", "ingress_drop", "egress_drop", "XDP_DROP"],
        "`mark_to_drop();` drops a packet",
    ),
    (&["pass", "accept", "XDP_PASS"], "`mark_to_pass();` lets a packet pass"),
    (
        &[
            "send_to_port",
            "output",
            "forward",
            "multicast",
            "REDIRECT",
            "XDP_REDIRECT",
            "egress_spec",
            "egress_port",
            "ucast_egress_port",
        ],
        "of `standard_metadata`, `output_action = ubpf_action.REDIRECT` and `output_port` say where a packet leaves",
    ),
    (
        &["clone", "clone3", "clone_preserving_field_list", "mirror_packet"],
        "of `standard_metadata`, `clone = true` and `clone_port` say where a copy leaves",
    ),
    (&["counter", "CounterArray"], "`Counter` of `#include <kaido.p4>` counts"),
    (
        &["direct_counter"],
        "`DirectCounter` of `#include <kaido.p4>` counts for each entry of a table",
    ),
    (&["ingress_port"], "`input_port` of `standard_metadata` says where a packet came in"),
    (&["random", "Random"], "this model has no random numbers"),
    (
        &["recirculate", "resubmit", "recirculate_preserving_field_list"],
        "a packet goes through a program once",
    ),
    (
        &["RED", "YELLOW", "GREEN", "MeterColor_t"],
        "colors are `PSA_MeterColor_t.RED`, YELLOW and GREEN",
    ),
    (
        &["MeterType_t", "MeterType", "CounterType_t", "CounterType"],
        "`PSA_MeterType_t` and `PSA_CounterType_t` of `#include <kaido.p4>` say what is counted",
    ),
    (&["meter", "execute_meter"], "`Meter` of `#include <kaido.p4>` measures"),
    (
        &["direct_meter"],
        "`DirectMeter` of `#include <kaido.p4>` measures for each entry of a table",
    ),
    (&["digest"], "`Digest` of `#include <kaido.p4>` tells the control plane"),
    (
        &["array_table", "hash_table", "register"],
        "`Register<VALUE, INDEX>(size)` keeps values; tables need no other size than `size = 1024;`",
    ),
    (
        &["ingress_timestamp", "ingress_global_timestamp", "get_time"],
        "`ubpf_time_get_ns()` is the time in nanoseconds",
    ),
    (
        &["log_msg", "print", "printf", "assert", "assume"],
        "a program prints nothing: `Counter` and `Digest` of `#include <kaido.p4>` tell what it does, and `kaido p4 test` tries it",
    ),
    (
        &["verify_checksum", "update_checksum", "Checksum", "Checksum16", "InternetChecksum"],
        "`csum_replace2` and `csum_replace4` change a checksum where one word has changed",
    ),
];

/// Returns the counterpart in this model of a name in another one.
pub fn counterpart(name: &str) -> Option<&'static str> {
    let found = COUNTERPARTS.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, help)| *help)
}

/// Returns a hint for an undeclared name.
pub fn meant(name: &str) -> Option<String> {
    let of_model = model_file(name);
    of_model
        .map(|file| format!("`#include <{file}>` at the beginning declares it"))
        .or_else(|| counterpart(name).map(str::to_owned))
        .or_else(|| match name.to_ascii_lowercase().as_str() {
            word @ ("true" | "false") => Some(format!("write `{word}`")),
            "null" | "nil" | "none" => Some("P4 has no such value: numbers begin with 0".into()),
            _ => None,
        })
        .or_else(|| meant_type(name).map(|of| format!("write `{of}`")))
}

/// Returns the model's file that declares the name.
fn model_file(name: &str) -> Option<&'static str> {
    static DECLARED: LazyLock<HashMap<Arc<str>, &'static str>> = LazyLock::new(|| {
        let mut all = HashMap::new();
        // Each file includes the preceding ones that it needs.
        for file in ["ubpf_model.p4", "vm.p4", "kaido.p4"] {
            let parsed =
                crate::parse(file, library::text(file).unwrap_or_default(), &crate::NoIncludes);
            for one in parsed.program.declarations {
                all.entry(one.name.text).or_insert(file);
            }
        }
        all
    });
    DECLARED.get(name).copied()
}

/// Include files of other models, without the suffix.
const OTHER_MODELS: [&str; 9] =
    ["v1model", "psa", "pna", "tna", "t2na", "xdp_model", "ebpf_model", "dash", "dpdk"];

/// Returns a hint for a file that cannot be included.
pub(crate) fn meant_file(name: &str) -> Option<String> {
    let stem = name.rsplit('/').next()?.strip_suffix(".p4")?;
    if OTHER_MODELS.contains(&stem) {
        return Some(format!(
            "this model is not here: `#include <ubpf_model.p4>` has `packet_in`, `mark_to_drop()`, `Register` and \
             {MAIN}, and `#include <kaido.p4>` has counters, meters and digests"
        ));
    }
    let begins = library::names().find(|one| stem.len() > 1 && one.starts_with(stem));
    let near =
        begins.map(Into::into).or_else(|| closest(name, library::names().map(Into::into)))?;
    Some(format!("`#include <{near}>` is there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_found() {
        let found =
            |name: &str, known: &[&str]| closest_word(name, known).map(|one| one.to_string());
        assert_eq!(found("haeder", &["heads", "header", "x"]).as_deref(), Some("header"));
        assert_eq!(found("x", &["y", "xyz"]).as_deref(), Some("y"));
        assert_eq!(found("header", &["head_of_it", "h"]), None);
        // Long names are not compared: that would take too much memory.
        let long = "a".repeat(300_000);
        assert_eq!(found(&long, &[&long, "a"]), None);
        assert_eq!(found("a", &[&long]), None);
    }

    #[test]
    fn a_program_ends_with_the_package_of_the_model() {
        assert!(MAIN.starts_with(&format!("`{PACKAGE}(")), "{MAIN}");
        assert_eq!(model_file(PACKAGE), Some("ubpf_model.p4"));
    }

    #[test]
    fn names_of_other_languages_are_known() {
        for (name, wanted) in [
            ("bits", Some("write `bit<8>`")),
            ("bit16", Some("write `bit<16>`")),
            ("uint8_t", Some("write `bit<8>`")),
            ("u32", Some("write `bit<32>`")),
            ("int16_t", Some("write `int<16>`")),
            ("boolean", Some("write `bool`")),
            ("standard_metadata_t", Some("write `standard_metadata`")),
            ("True", Some("write `true`")),
            ("vm_info", Some("`#include <vm.p4>` at the beginning declares it")),
            ("Counter", Some("`#include <kaido.p4>` at the beginning declares it")),
            ("mark_to_drop", Some("`#include <ubpf_model.p4>` at the beginning declares it")),
            ("drop", Some("`mark_to_drop();` drops a packet")),
            (
                "V1Switch",
                Some("this model's package is `ubpf(parse(), pipeline(), deparser()) main;`"),
            ),
            ("u", None),
            ("s", None),
            ("route", None),
        ] {
            assert_eq!(meant(name).as_deref(), wanted, "{name}");
        }
        assert!(meant_file("v1model.p4").is_some_and(|help| help.contains("<ubpf_model.p4>")));
        for near in ["ubpf.p4", "ubpf_modle.p4"] {
            assert_eq!(meant_file(near).as_deref(), Some("`#include <ubpf_model.p4>` is there"));
        }
        assert_eq!(meant_file("parts.p4"), None);
    }
}
