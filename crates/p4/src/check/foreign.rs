//! User-declared extern functions, and their implementations: a helper of the machine
//! (`@helper(number)`), or a value that the tenant's VM publishes (`@vm_info("key")`, or the name of
//! the function).

use std::sync::Arc;

use p4_object::HELPERS;
use p4_object::vm;
use p4_syntax::ast::{Annotation, Direction};
use p4_syntax::number;

use crate::ir::{ExternFunction, Program, Prototype, Type};

/// Maximum number of arguments of a helper or a library's function: registers r1 to r5.
const MAX_ARGUMENTS: usize = 5;
/// Helpers of this machine that take and return only numbers.
const OF_NUMBERS: [&str; 1] = ["time_get_ns"];

/// Returns the implementation of an extern function, if the program specifies one.
///
/// # Errors
///
/// If the annotation or the signature is invalid.
pub(super) fn foreign(program: &Program, of: &Prototype) -> Result<Option<ExternFunction>, String> {
    let said = |name: &str| of.declared.annotations.iter().find(|one| &*one.name.text == name);
    match (said("helper"), said("vm_info")) {
        (Some(_), Some(_)) => Err("it is either a helper or a value of the VM's".to_owned()),
        (Some(helper), None) => helper_of(program, of, helper).map(Some),
        (None, Some(key)) => {
            let Some(key) = text(key) else {
                return Err("the key's name is missing: `@vm_info(\"name\")`".to_owned());
            };
            if !reads_one_value(program, of) {
                let name = &of.declared.name;
                return Err(format!(
                    "a value of the VM's is `extern bool {name}(out bit<64> value)`"
                ));
            }
            checked_key(&key)?;
            Ok(Some(ExternFunction::VmInfo(key)))
        }
        (None, None) if reads_one_value(program, of) && of.generic.is_empty() => {
            Ok(Some(ExternFunction::VmInfo(of.declared.name.clone())))
        }
        (None, None) => Ok(None),
    }
}

fn helper_of(
    program: &Program,
    of: &Prototype,
    said: &Annotation,
) -> Result<ExternFunction, String> {
    let number = match &said.body[..] {
        [word] => number::parse(word).ok().and_then(|parsed| i32::try_from(parsed.value).ok()),
        _ => None,
    };
    let Some(number) = number.filter(|number| *number > 0) else {
        return Err("a helper is a number: `@helper(5)`".to_owned());
    };
    let known = HELPERS.iter().find(|(one, _)| *one == number).map(|(_, name)| name);
    if let Some(name) = known.filter(|name| !OF_NUMBERS.contains(name)) {
        return Err(format!(
            "helper {number} ({name}) is the compiler's own: it takes more than numbers"
        ));
    }
    if of.parameters.len() > MAX_ARGUMENTS {
        return Err(format!("a helper takes at most {MAX_ARGUMENTS} arguments"));
    }
    if !takes_numbers(program, of) {
        return Err("a helper takes and gives bit<W>, int<W> and bool, of at most 64 bits, \
                    and nothing comes back by its arguments"
            .to_owned());
    }
    Ok(ExternFunction::Helper(number))
}

/// Returns true if registers hold the arguments, which are all `in`, and the result.
pub(super) fn takes_numbers(program: &Program, of: &Prototype) -> bool {
    let goes_in = |direction| matches!(direction, Direction::In | Direction::None);
    of.generic.is_empty()
        && of.parameters.len() <= MAX_ARGUMENTS
        && of.parameters.iter().all(|one| goes_in(one.direction) && is_word(program, &one.of))
        && (of.returns == Type::Void || is_word(program, &of.returns))
}

/// Returns true if the type fits into a register.
fn is_word(program: &Program, of: &Type) -> bool {
    match program.representation(of) {
        Type::Bool => true,
        Type::Bits { width, .. } => (1..=64).contains(&width),
        _ => false,
    }
}

/// Returns true if the signature is `bool name(out T value)`.
fn reads_one_value(program: &Program, of: &Prototype) -> bool {
    of.returns == Type::Bool
        && matches!(&of.parameters[..], [one] if one.direction == Direction::Out
            && program.representation(&one.of).is_bits())
}

/// Returns the string argument of an annotation.
fn text(of: &Annotation) -> Option<Arc<str>> {
    match &of.body[..] {
        [one] => one.strip_prefix('"')?.strip_suffix('"').map(Into::into),
        _ => None,
    }
}

/// Validates the name of a key.
///
/// # Errors
///
/// If the name is invalid.
pub(super) fn checked_key(name: &str) -> Result<(), String> {
    if vm::is_name(name) {
        return Ok(());
    }
    let most = vm::MAX_NAME;
    Err(format!("a key's name has letters, digits, `.-_:/@`, and at most {most} of them"))
}
