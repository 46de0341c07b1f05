//! Calls that read values from the tenant's VM (crates/p4-syntax/model/vm.p4).

use std::sync::Arc;

use p4_syntax::diagnostic::Diagnostic;

use super::foreign::checked_key;
use super::{Checked, Checker};
use crate::ir::{Expression, ExternFunction, Prototype, Type, Value};

impl Checker<'_> {
    /// Resolves such a call, and removes its key from the arguments; None for other functions.
    ///
    /// The key must be a string literal, and the value a variable of a numeric type.
    pub(super) fn vm_call(
        &mut self,
        prototype: &Prototype,
        arguments: &mut Vec<Expression>,
    ) -> Checked<Option<ExternFunction>> {
        let resolved = match (&*prototype.declared.name, &arguments[..]) {
            ("vm_info", [key, value]) if key.of == Type::String => {
                let name = self.vm_key(key)?;
                self.check_vm_value(value)?;
                ExternFunction::VmInfo(name)
            }
            ("vm_info_age", [key]) if key.of == Type::String => {
                ExternFunction::VmInfoAge(self.vm_key(key)?)
            }
            _ => return Ok(None),
        };
        arguments.remove(0);
        Ok(Some(resolved))
    }

    fn vm_key(&mut self, key: &Expression) -> Checked<Arc<str>> {
        let Some(Value::String(name)) = key.constant() else {
            return self.wrong(key.span, "a key is a name that is written out: `\"name\"`");
        };
        match checked_key(name) {
            Ok(()) => Ok(name.clone()),
            Err(why) => self.wrong(key.span, why),
        }
    }

    fn check_vm_value(&mut self, value: &Expression) -> Checked<()> {
        if self.program.representation(&value.of).is_bits() {
            return Ok(());
        }
        let what = self.describe(&value.of);
        let diagnostic =
            Diagnostic::error(value.span, format!("this is {what}, and values are numbers"));
        self.refuse(
            diagnostic.help("read it into a variable of the type bit<64>, or a narrower one"),
        )
    }
}

#[cfg(test)]
mod tests {
    use p4_syntax::NoIncludes as Nothing;

    /// Returns the diagnostics of a program with these declarations and this apply block.
    fn said(declarations: &str, apply: &str) -> String {
        let text = format!(
            "#include <ubpf_model.p4>
            #include <vm.p4>
            header h_t {{ bit<8> a; }}
            struct headers {{ h_t h; }}
            struct meta_t {{ }}
            {declarations}
            parser prs(packet_in p, out headers hdr, inout meta_t m, inout standard_metadata std) {{
                state start {{ transition accept; }}
            }}
            control c(inout headers hdr, inout meta_t m, inout standard_metadata std) {{
                bit<8> n; bool b;
                apply {{ {apply} }}
            }}
            control dprs(packet_out b, in headers hdr) {{ apply {{ b.emit(hdr.h); }} }}
            ubpf(prs(), c(), dprs()) main;"
        );
        let checked = crate::check("vm", &text, &Nothing);
        let said = checked.diagnostics.render(&checked.sources, false);
        if checked.diagnostics.has_errors() { said } else { String::new() }
    }

    #[test]
    fn keys_are_names_and_values_numbers() {
        assert_eq!(said("", "b = vm_info(\"net.utilisation\", n);"), "");
        assert_eq!(said("", "b = vm_info_age(\"a\") > 5;"), "");
        for (apply, why) in [
            ("b = vm_info(\"two words\", n);", "a key's name has letters"),
            ("b = vm_info(\"\", n);", "a key's name has letters"),
            ("b = vm_info(\"a\", b);", "values are numbers"),
            ("b = vm_info(\"a\", 8w5);", "nothing can be put here"),
            ("b = vm_info(n, n);", "string"),
            ("b = vm_info(\"a\");", "`value` has no value"),
        ] {
            let said = said("", apply);
            assert!(said.contains(why), "{apply}: wanted {why}:\n{said}");
        }
    }

    #[test]
    fn externs_of_the_program_declare_their_kind() {
        for right in [
            "@helper(5) extern bit<48> now();",
            "@helper(0x40) extern void f(in bit<32> a, in bool b, in int<8> c);",
            "extern bool queue(out bit<32> length);",
            "@vm_info(\"app.queue\") extern bool queue(out int<9> length);",
        ] {
            assert_eq!(said(right, ""), "", "{right}");
        }
        for (wrong, why) in [
            ("@helper(1) extern bit<64> f();", "helper 1 (map_lookup) is the compiler's own"),
            ("@helper(20) extern bit<64> f();", "helper 20 (get_vm_info) is the compiler's own"),
            ("@helper(0) extern bit<64> f();", "a helper is a number"),
            ("@helper(x) extern bit<64> f();", "a helper is a number"),
            ("@helper extern bit<64> f();", "a helper is a number"),
            ("@helper(77) extern bit<65> f();", "at most 64 bits"),
            ("@helper(77) extern bit<8> f(out bit<8> a);", "nothing comes back"),
            ("@helper(77) extern bit<8> f(in headers a);", "at most 64 bits"),
            (
                "@helper(77) extern void f(bit<1> a, bit<1> b, bit<1> c, bit<1> d, bit<1> e, bit<1> f);",
                "at most 5 arguments",
            ),
            ("@helper(77) @vm_info(\"a\") extern bool f(out bit<8> a);", "either a helper or"),
            ("@vm_info(\"a\") extern bit<8> f();", "`extern bool f(out bit<64> value)`"),
            ("@vm_info extern bool f(out bit<8> a);", "the key's name is missing"),
            ("@vm_info(\"a b\") extern bool f(out bit<8> a);", "a key's name has letters"),
        ] {
            let said = said(wrong, "");
            assert!(said.contains(why), "{wrong}: wanted {why}:\n{said}");
        }
    }
}
