//! Parser and control types, packages, and `main` (P4_16 specification, sections 7.2.11 to 7.2.13
//! and 17).

use p4_syntax::ast::{self, TypeKind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;
use p4_syntax::words::{MAIN, PACKAGE};

use super::arguments::direction_text;
use super::scope::Symbol;
use super::{Checked, Checker, declared};
use crate::ir::{
    BlockBody, BlockId, ConstructorArgument, Declared, Main, NotElaborated, Parameter, Type,
};

/// `parser name<…>(…);` or `control name<…>(…);`
pub(super) struct BlockType {
    declared: Declared,
    is_parser: bool,
    generic: usize,
    parameters: Vec<Parameter>,
}

/// `package name<…>(…);`
#[derive(Clone)]
pub(super) struct Package {
    declared: Declared,
    generic: usize,
    /// Parameters: name, parser or control type, and type arguments.
    parameters: Vec<(Parameter, usize, Vec<Type>)>,
}

impl Checker<'_> {
    pub(super) fn block_type(
        &mut self,
        written: &ast::Declaration,
        parameters: &[ast::Parameter],
        is_parser: bool,
    ) -> Checked<Symbol> {
        let generic = &written.type_parameters;
        let parameters =
            self.with_generic(generic, 0, |checker| checker.prototype_parameters(parameters))?;
        let declared = declared(&written.name, &written.annotations);
        self.block_types.push(BlockType {
            declared,
            is_parser,
            generic: generic.len(),
            parameters,
        });
        Ok(Symbol::BlockType(self.block_types.len() - 1))
    }

    pub(super) fn package(
        &mut self,
        written: &ast::Declaration,
        parameters: &[ast::Parameter],
    ) -> Checked<Symbol> {
        let generic = &written.type_parameters;
        let parameters = self.with_generic(generic, 0, |checker| {
            parameters.iter().map(|one| checker.package_parameter(one)).collect::<Checked<Vec<_>>>()
        })?;
        let declared = declared(&written.name, &written.annotations);
        self.packages.push(Package { declared, generic: generic.len(), parameters });
        Ok(Symbol::Package(self.packages.len() - 1))
    }

    fn package_parameter(
        &mut self,
        written: &ast::Parameter,
    ) -> Checked<(Parameter, usize, Vec<Type>)> {
        let TypeKind::Named(name, types) = &written.of.kind else {
            return self
                .unsupported(written.of.span, "a package of anything but parsers and controls");
        };
        let Symbol::BlockType(id) = self.find(name)? else {
            return self.unsupported(name.span, "a package of anything but parsers and controls");
        };
        let types = self.types_of(types)?;
        self.check_arity(name, self.block_types[id].generic, types.len())?;
        let parameter = Parameter {
            declared: declared(&written.name, &written.annotations),
            of: Type::Void,
            direction: written.direction,
            default: None,
        };
        Ok((parameter, id, types))
    }

    /// Checks `package(…) main;`.
    pub(super) fn main(
        &mut self,
        written: &ast::Declaration,
        package: usize,
        arguments: &[ast::Argument],
    ) -> Checked<()> {
        let package = self.packages[package].clone();
        if arguments.len() != package.parameters.len() {
            let (name, count) = (&package.declared.name, package.parameters.len());
            let diagnostic =
                Diagnostic::error(written.name.span, format!("`{name}` takes {count} parts"));
            return self.refuse(diagnostic.label(format!("{} are given", arguments.len())));
        }
        let mut known: Vec<Option<Type>> = vec![None; package.generic];
        let mut instances = Vec::new();
        for (at, (parameter, block_type, types)) in package.parameters.iter().enumerate() {
            let named = |one: &&ast::Argument| match &one.name {
                Some(name) => name.text == parameter.declared.name,
                None => false,
            };
            let argument = arguments.iter().find(named).or(arguments.get(at));
            let Some(value) = argument.and_then(|one| one.value.as_ref()) else {
                let name = &parameter.declared.name;
                return self.wrong(written.name.span, format!("`{name}` is missing"));
            };
            let (instance, block) = self.package_argument(value, parameter)?;
            self.check_block_type(value.span, block, *block_type, types, &mut known)?;
            instances.push(ConstructorArgument::Instance(instance));
        }
        if &*written.name.text == "main" {
            self.program.main = Some(Main {
                span: written.name.span,
                package: package.declared.name,
                arguments: instances,
            });
        } else {
            self.other_main = Some(written.name.span);
        }
        Ok(())
    }

    /// Reports an error unless the parser or control has this type.
    fn check_block_type(
        &mut self,
        span: Span,
        block: BlockId,
        block_type: usize,
        types: &[Type],
        known: &mut [Option<Type>],
    ) -> Checked<()> {
        let wanted = &self.block_types[block_type];
        let (name, is_parser) = (wanted.declared.name.clone(), wanted.is_parser);
        let wanted_parameters = wanted.parameters.clone();
        let given = self.block(block);
        let (given_name, given_span) = (given.declared.name.clone(), given.declared.span);
        if matches!(given.body, BlockBody::Parser { .. }) != is_parser {
            let what = if is_parser { "a parser" } else { "a control" };
            let diagnostic = Diagnostic::error(span, format!("`{given_name}` is not {what}"));
            return self.refuse(diagnostic.related(given_span, "declared here"));
        }
        let given = self.parameters_of(&given.parameters.clone());
        if given.len() != wanted_parameters.len() {
            let count = wanted_parameters.len();
            let diagnostic =
                Diagnostic::error(span, format!("`{given_name}` does not match `{name}`"));
            let why = format!("it has {} parameters, and `{name}` {count}", given.len());
            return self.refuse(diagnostic.related(given_span, why));
        }
        for (wanted, given) in wanted_parameters.iter().zip(&given) {
            let of =
                self.substitute(&wanted.of, &types.iter().cloned().map(Some).collect::<Vec<_>>());
            if Self::unify(&of, &given.of, known) && wanted.direction == given.direction {
                continue;
            }
            let of = self.substitute(&of, known);
            let (of, what) = (self.describe(&of), self.describe(&given.of));
            let (direction, other) =
                (direction_text(wanted.direction), direction_text(given.direction));
            let diagnostic = Diagnostic::error(
                span,
                format!("`{given_name}` does not match `{name}`"),
            )
            .related(given.declared.span, format!("this is {other}{what}, not {direction}{of}"));
            return self.refuse(diagnostic);
        }
        Ok(())
    }

    /// Reports a missing `main`, a wrong package, or a failed elaboration.
    pub(super) fn require_main(&mut self) {
        if self.problems.has_errors() {
            return;
        }
        if let Some(main) = &self.program.main {
            if &*main.package != PACKAGE {
                let message = format!("`{}` is not a package of this model", main.package);
                let diagnostic = Diagnostic::error(main.span, message);
                self.problems.add(diagnostic.help(format!("write {MAIN}")));
                return;
            }
            let Err(why) = self.program.elaborate() else { return };
            let (span, help) = match &why {
                NotElaborated::NoMain | NotElaborated::TooMany => {
                    (main.span, "each nested control multiplies the number of instances")
                }
                NotElaborated::TooLarge(span) => {
                    (*span, "a table holds more, one entry after the other")
                }
                NotElaborated::NoElements(span) => (*span, "one element is the least"),
                NotElaborated::NoValue(span) => (*span, "a constructor's argument gives it none"),
                NotElaborated::SameName(_, span) => {
                    (*span, "`@name(\"…\")` gives one another name")
                }
            };
            self.problems.add(Diagnostic::error(span, why.to_string()).help(help));
            return;
        }
        let span = self.other_main.unwrap_or_default();
        let diagnostic = Diagnostic::error(span, "the program has no `main`");
        self.problems.add(match self.other_main {
            Some(_) => diagnostic.label("expected `main`"),
            None => diagnostic.help(format!("instantiate the package: {MAIN}")),
        });
    }
}
