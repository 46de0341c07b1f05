use std::time::Duration;

use model::Isolation;

use crate::parse;

/// Messages of a file.
fn errors(text: &str) -> Vec<String> {
    let problems = parse("tenants.yaml", text).unwrap_err();
    problems.problems.iter().map(|one| format!("{}: {}", one.line, one.message)).collect()
}

#[test]
fn a_tenant_has_defaults() {
    let text = "tenants:\n  blue: {program: a.p4, ports: {eth1: 1}}\n  red:\n    program: b.o\n    \
                ports: {eth2: 0, eth3: 7}\n    default: pass\n    deadline: 5ms\n    hold: 0s\n    \
                queues: 4\n    cpu: 50\n    device: 9\n    vm_info: vm\n    entries: e\n";
    let [blue, red] = <[_; 2]>::try_from(parse("t", text).unwrap()).unwrap();
    assert_eq!((blue.name.as_str(), blue.device, blue.queues), ("blue", 1, 16));
    assert_eq!(blue.ports, [("eth1".to_owned(), 1)]);
    assert!(!blue.passes_without_verdict && blue.cpu.is_none());
    assert_eq!(blue.isolation, Isolation::Process);
    let wanted = (Duration::from_millis(100), Duration::from_secs(1));
    assert_eq!((blue.deadline, blue.hold), wanted);
    assert!(red.passes_without_verdict && red.ports.len() == 2);
    assert_eq!((red.deadline, red.hold), (Duration::from_millis(5), Duration::ZERO));
    assert_eq!((red.device, red.queues, red.cpu), (9, 4, Some(50)));
}

#[test]
fn all_errors_are_reported() {
    let text = "tenants:\n\
                \x20 blue: {program: a.p4, ports: {eth1: 1, eth2: 1}}\n\
                \x20 Red: {program: '', ports: {eth1: 300}}\n\
                \x20 green: {program: c.p4, ports: {}, device: 1, deadline: 0s, queues: 1, cpu: 0}\n\
                \x20 grey: {program: d.p4, ports: {a/b: 1}, default: maybe}\n\
                \x20 pink: {program: e.p4, ports: {eth9: 1}, isolation: inline, cpu: 5}\n";
    let found = errors(text);
    assert_eq!(found, ["5: `maybe` is not known here"], "the grammar comes first");
    let found = errors(&text.replace("maybe", "drop").replace("device: 1,", "device: 2,"));
    let wanted = [
        "2: `eth1` has the number 1 already",
        "3: `Red` cannot name a tenant",
        "3: 300 cannot be a port's number",
        "3: `eth1` is a port of tenant `blue`",
        "3: the program has no name",
        "4: the tenant has no ports",
        "4: device 2 is tenant `Red`'s",
        "4: this cannot be a tenant's deadline",
        "4: `queues` cannot be 1",
        "4: a process cannot have 0 percent of a CPU",
        "5: `a/b` cannot name an interface",
        "6: a program in the client's process has no limit of its own",
    ];
    for message in wanted {
        assert!(found.iter().any(|one| one == message), "{message}: {found:#?}");
    }
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    // A client may be without tenants, as a switch of a lab.
    assert_eq!(parse("t", "tenants: {}\n").unwrap(), []);
    assert_eq!(errors(""), ["1: the file is empty"]);
}

#[test]
fn a_kernel_is_of_a_virtual_machine() {
    let text = "tenants:\n  a: {program: a.p4, ports: {eth1: 1}, kernel: /boot/vmlinuz}\n";
    assert_eq!(errors(text), ["2: `kernel` has no effect without a virtual machine"]);
    let text = text.replace("kernel", "isolation: vm, kernel");
    let kernel = Some("/boot/vmlinuz".into());
    assert_eq!(parse("t", &text).unwrap()[0].isolation, Isolation::Vm { kernel });
}

#[test]
fn the_text_of_tenants_is_a_file_with_the_same_tenants() {
    let text = "tenants:\n  a: {program: 'a: b.p4', ports: {'no': 3, eth1: 1}}\n  b: {program: b.o, ports: \
                {eth2: 0}, entries: e, device: 9, default: pass, deadline: 1500us, hold: 0s, queues: \
                4, cpu: 50, vm_info: vm}\n  c: {program: c, ports: {e: 1}, isolation: inline}\n  \
                d: {program: d, ports: {f: 1}, isolation: vm, kernel: vmlinuz}\n";
    let tenants = parse("t", text).unwrap();
    let mut again = parse("t", &crate::text(&tenants)).unwrap();
    // The order of ports has no meaning.
    again.iter_mut().for_each(|tenant| tenant.ports.sort());
    let mut sorted = tenants;
    sorted.iter_mut().for_each(|tenant| tenant.ports.sort());
    assert_eq!(again, sorted);
}

#[test]
fn the_number_of_tenants_is_limited() {
    let tenants = |count: usize| {
        let tenant = |number| format!("  t{number}: {{program: a.p4, ports: {{e{number}: 1}}}}\n");
        format!("tenants:\n{}", (0..count).map(tenant).collect::<String>())
    };
    assert_eq!(crate::parse("t.yaml", &tenants(64)).unwrap().len(), 64);
    let problems = crate::parse("t.yaml", &tenants(65)).unwrap_err().to_string();
    assert!(problems.contains("there are 65 tenants"), "{problems}");
}
