//! Tests of the programs in `crates/p4`: their STF tests pass when compiled, and all accesses hit
//! the region that the compiler predicts.

use super::*;
use crate::Tested;
use crate::compile::calls::UNEXPECTED;

#[test]
fn no_access_is_looked_up_out_of_line() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/tests/programs");
    let mut run = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "stf") {
            continue;
        }
        let [program, test] =
            [path.with_extension("p4"), path.clone()].map(std::fs::read_to_string);
        let checked = p4::check("program.p4", &program.unwrap(), &p4::NoIncludes);
        // Programs that exceed the compiler's limits are tested there.
        let Ok(compiled) = p4_ebpf::compile(&checked.program, &checked.sources) else { continue };
        let program = Program::load(&compiled.object, &Limits::default()).unwrap();
        let elaborated = p4::interpret::elaborate(&checked.program).unwrap();
        let mut tested = Tested::new(&compiled, elaborated, &program).unwrap();
        UNEXPECTED.set(0);
        let lines = p4::stf::parse(&test.unwrap()).unwrap();
        let failures = p4::stf::run(&checked.program, &mut tested, &lines);
        assert!(failures.is_empty(), "{}: {failures:?}", path.display());
        assert_eq!(UNEXPECTED.get(), 0, "{}", path.display());
        run += 1;
    }
    assert!(run > 50, "{run} programs");
}
