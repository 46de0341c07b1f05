//! Complete files of each tool, and errors in them.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use import::{Beside, Format, Imported, import};

const LEAVES: &str = include_str!("files/leaves.clab.yml");
const CAMPUS: &str = include_str!("files/campus/lab.conf");
const PC1: &str = include_str!("files/campus/pc1.startup");
const OFFICE: &str = include_str!("files/office.mn");

fn imported(format: Format, text: &str, beside: &[Beside]) -> Imported {
    let imported = import(format, "some/file", "given", text, beside).unwrap();
    let topology = topology_file::parse("made", &imported.topology).unwrap();
    assert_eq!(topology.name, imported.lab);
    // Nothing is dropped silently: the notes are in the file as well.
    for note in &imported.notes {
        assert!(imported.topology.contains(&note.text), "{note:?}");
    }
    imported
}

/// The topology without its comments.
fn body(imported: &Imported) -> String {
    let lines = imported.topology.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

fn has_note(imported: &Imported, line: Option<usize>, words: &str) {
    let found = imported.notes.iter().any(|n| n.line == line && n.text.contains(words));
    assert!(found, "{words}: {:#?}", imported.notes);
}

#[test]
fn containerlab() {
    let lab = imported(Format::Containerlab, LEAVES, &[]);
    let wanted = "\
name: two-leaves
routing: [ospf, ospf6]
nodes:
  spine1: {router: frr}
  leaf1: {router: frr}
  leaf2: {router: frr}
  client1: {}
  client2: {}
links:
  - spine1-leaf1
  - spine1-leaf2
  - leaf1-client1
  - leaf2-client2
  - br_lab: [leaf1, leaf2]";
    assert_eq!(body(&lab), wanted);
    has_note(&lab, Some(3), "`mgmt`");
    has_note(&lab, Some(16), "`binds` of spine-1");
    has_note(&lab, Some(19), "`startup-config` of leaf-2 is not carried over (leaf-2.cfg)");
    has_note(&lab, Some(19), "nokia_srlinux");
    has_note(&lab, Some(21), "`exec` of client1");
    has_note(&lab, Some(24), "`ports` of client2");
    has_note(&lab, Some(36), "this machine (host)");
    has_note(&lab, Some(13), "`spine-1` is called spine1");
    has_note(&lab, None, "OSPF");
}

#[test]
fn kathara() {
    let startup = Beside { name: "pc1.startup".into(), text: PC1.into() };
    let lab = imported(Format::Kathara, CAMPUS, &[startup]);
    let wanted = "\
name: campus
routing: [ospf, ospf6]
nodes:
  pc1: {}
  pc2: {}
  gw: {router: frr}
  core: {router: frr}
  srv: {}
links:
  - gw-core
  - core-srv
  - A: [pc1, pc2, gw]";
    assert_eq!(body(&lab), wanted);
    has_note(&lab, Some(2), "LAB_AUTHOR");
    has_note(&lab, Some(6), "gw has several interfaces");
    has_note(&lab, Some(8), "02:00:00:00:00:07");
    has_note(&lab, Some(10), "kathara/frr");
    has_note(&lab, Some(11), "`sysctl` of core");
    has_note(&lab, None, "pc1.startup: not carried over: ip address add 192.168.10.2/24 dev eth0");
    assert!(!lab.notes.iter().any(|note| note.text.contains("The first PC")));
}

#[test]
fn miniedit() {
    let lab = imported(Format::Miniedit, OFFICE, &[]);
    let wanted = "\
name: given
nodes:
  h1: {}
  h2: {}
  h3: {}
  r1: {router: linux}
  r2: {router: linux}
links:
  - r1-r2: {rate: 20mbit, queue: 200p, delay: 10ms, jitter: 1ms, loss: 1%}
  - s1: {nodes: [h1, h2, r1], rate: 100mbit, delay: 10ms}
  - s2: [r2, h3]";
    assert_eq!(body(&lab), wanted);
    has_note(&lab, Some(4), "controller c0");
    has_note(&lab, Some(8), "`ip` of h2 is not carried over (10.0.0.22)");
    has_note(&lab, Some(15), "`speedup`");
    has_note(&lab, Some(17), "s2 and s3 are connected: they are one LAN, without rate 50mbit");
    has_note(&lab, Some(18), "h3's delay 2ms");
}

#[test]
fn an_impossible_link_is_left_out_with_a_note() {
    let text = "a[0]=\"X\"\na[1]=\"X\"\nb[0]=\"Y\"\nnull[0]=\"Z\"\nb[1]=Z\na[2]=Z\n";
    let lab = imported(Format::Kathara, text, &[]);
    assert!(body(&lab).ends_with("links:\n  - Z: ['null', b, a]"), "{}", lab.topology);
    has_note(&lab, Some(1), "a link of a to itself");
    has_note(&lab, Some(3), "fewer than two nodes");
}

#[test]
fn a_note_stays_in_its_comment() {
    let text = "topology:\n  nodes: {a: {exec: \"x\\ny: z\", cmd: \"x\\rname: evil\"}}\n";
    let lab = imported(Format::Containerlab, text, &[]);
    assert_eq!(body(&lab), "name: given\nnodes:\n  a: {}");
    has_note(&lab, Some(2), "`exec` of a");
}

#[test]
fn mistakes_have_a_line_and_a_fix() {
    use Format::{Containerlab, Kathara, Miniedit};
    for (format, text, line, words) in [
        (Containerlab, "", 1, "the file is empty"),
        (Containerlab, "name: a\ntopology: {nodes: [}\n", 2, "not YAML"),
        (Containerlab, "name: a\ntopolgy: {}\n", 1, "did you mean `topology`"),
        (Containerlab, "topology: {nodes: {}}\n", 1, "no nodes"),
        (
            Containerlab,
            "topology:\n  nodes: {ab: {}}\n  links:\n  - endpoints: [\"ab:e\", \"aab:e\"]\n",
            4,
            "did you mean `ab`?",
        ),
        (Containerlab, "topology:\n  nodes: {a: }\n  links:\n  - {}\n", 4, "two endpoints"),
        (Containerlab, "topology:\n  nodes: {a: }\n  links: 7\n", 3, "not a list"),
        (Kathara, "# nothing\n", 1, "no devices"),
        (Kathara, "pc1[0]=\"A\"\nhello\n", 2, "not a line of a lab.conf"),
        (Kathara, "pc1[0]=\"A\"\npc1[0]=\"B\"\n", 2, "given twice"),
        (Kathara, "pc1[0]=\"\"\n", 1, "without a collision domain"),
        (Miniedit, "{\"hosts\":\n[}", 2, "not YAML"),
        (Miniedit, "{\"nodes\": []}", 1, "no `hosts`"),
        (Miniedit, "{\"hosts\": []}", 1, "no hosts"),
        (Miniedit, "{\"hosts\": [\n{}]}", 2, "without a hostname"),
        (
            Miniedit,
            "{\"hosts\": [{\"opts\": {\"hostname\": \"h\"}}],\n\"links\": [{\"src\": \"h\",\n\
             \"dest\": \"g\"}]}",
            3,
            "no node `g`",
        ),
        (
            Miniedit,
            "{\"hosts\": [{\"opts\": {\"hostname\": \"h\"}}],\n\"links\": [{\"src\": \"h\",\n\
             \"dest\": \"h\", \"opts\": {\"bw\": \"fast\"}}]}",
            3,
            "write Mbit/s",
        ),
    ] {
        let problems = import(format, "f", "f", text, &[]).unwrap_err();
        let said = problems.to_string();
        assert!(said.contains(words), "{text:?}: {said}");
        assert_eq!(problems.problems[0].line, line, "{text:?}: {said}");
        assert!(problems.problems[0].help.is_some(), "{said}");
    }
    for format in [Containerlab, Kathara, Miniedit] {
        let said = import(format, "f", "f", &"x".repeat(5 << 20), &[]).unwrap_err().to_string();
        assert!(said.contains("larger than 4 MiB"), "{format:?}");
    }
}

/// Each node was compared with all kinds.
#[test]
fn many_kinds_of_many_nodes() {
    let kinds: String = (0..20_000).map(|n| format!("    k{n}: {{image: i{n}}}\n")).collect();
    let nodes: String = (0..20_000).map(|n| format!("    n{n}: {{kind: k{n}}}\n")).collect();
    let text = format!("name: a\ntopology:\n  kinds:\n{kinds}  nodes:\n{nodes}");
    // What a kind or an image means is not the question.
    let _ = import(Format::Containerlab, "some/file", "given", &text, &[]);
}

/// Each key that is left out is noted with its node's name.
#[test]
fn notes_have_a_maximum_number_and_length() {
    let keys: String = (0..10_002).map(|at| format!(", \"k{at}\": 1")).collect();
    let file = |name: &str| {
        format!("{{\"hosts\": [{{\"opts\": {{\"hostname\": \"{name}\"{keys}}}}}], \"links\": []}}")
    };
    let lab = imported(Format::Miniedit, &file("a"), &[]);
    assert_eq!(lab.notes.len(), 10_001);
    has_note(&lab, None, "2 more are not listed");
    let long = "a".repeat(256);
    let clab = |text: String| format!("topology:\n  {text}\n");
    let cases = [
        (Format::Miniedit, file(&long), "a hostname has 256 bytes"),
        (
            Format::Containerlab,
            clab(format!("nodes: {{{long}: {{}}}}")),
            "a node's name has 256 bytes",
        ),
        (Format::Containerlab, clab(format!("nodes: {{a: {{kind: {long}}}}}")), "its kind has 256"),
        (
            Format::Containerlab,
            clab(format!("nodes: {{a: {{image: {long}}}}}")),
            "its image has 256",
        ),
        (
            Format::Containerlab,
            clab(format!("kinds: {{{long}: {{a: 1}}}}")),
            "kind or group has 256",
        ),
    ];
    for (format, text, message) in cases {
        let said = import(format, "some/file", "given", &text, &[]).unwrap_err().to_string();
        assert!(said.contains(message) && said.contains("use at most 255"), "{said}");
    }
}
