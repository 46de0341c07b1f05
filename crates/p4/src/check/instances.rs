//! Instantiations (P4_16 specification, sections 11.3 and 15).

use p4_syntax::ast::{self, ExpressionKind as Kind, TypeKind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::arguments::is_generic;
use super::scope::Symbol;
use super::{Checked, Checker, Reported, declared};
use crate::ir::{
    BlockId, ConstructorArgument, Declared, Expression, ExpressionKind, Instance, InstanceId,
    InstanceKind, Parameter, Type,
};

impl Checker<'_> {
    pub(super) fn new_instance(&mut self, instance: Instance) -> InstanceId {
        let id = InstanceId(self.program.instances.len() as u32);
        self.program.instances.push(instance);
        self.instances.push(id);
        id
    }

    /// Checks `TYPE(arguments) name;` in a parser or a control.
    pub(super) fn local_instance(
        &mut self,
        written: &ast::Declaration,
        of: &ast::Type,
        arguments: &[ast::Argument],
    ) -> Checked<()> {
        let declared = declared(&written.name, &written.annotations);
        let id = self.construct(declared, of, arguments)?;
        self.declare(&written.name, Symbol::Instance(id));
        Ok(())
    }

    /// Checks an instantiation at top level, where packages are allowed too.
    pub(super) fn top_instance(
        &mut self,
        written: &ast::Declaration,
        of: &ast::Type,
        arguments: &[ast::Argument],
    ) -> Checked<()> {
        let TypeKind::Named(name, _) = &of.kind else {
            return self.wrong(of.span, "this type cannot be instantiated");
        };
        if let Symbol::Package(package) = self.find(name)? {
            return self.main(written, package, arguments);
        }
        self.local_instance(written, of, arguments)
    }

    /// Checks the constructor call `TYPE(arguments)`.
    fn construct(
        &mut self,
        declared: Declared,
        of: &ast::Type,
        arguments: &[ast::Argument],
    ) -> Checked<InstanceId> {
        if let TypeKind::Named(name, types) = &of.kind
            && let Symbol::Block(id) = self.find(name)?
        {
            if let Some(first) = types.first() {
                return self.wrong(first.span, format!("`{}` is not generic", name.text));
            }
            return self.construct_block(declared, id, of.span, arguments);
        }
        let instantiated = self.type_of(of)?;
        let Type::Extern(id, types) = &instantiated else {
            let what = self.describe(&instantiated);
            return self.wrong(of.span, format!("{what} has no constructor"));
        };
        let constructors = self.extern_named(*id).constructors.clone();
        let chosen = constructors.iter().find(|one| Self::may_take(&one.parameters, arguments));
        let Some(chosen) = chosen.or(constructors.first()) else {
            let what = self.describe(&instantiated);
            return self.wrong(of.span, format!("{what} has no constructor"));
        };
        let mut known: Vec<_> = types.iter().cloned().map(Some).collect();
        let parameters = chosen.parameters.clone();
        let arguments = self.arguments(of.span, &parameters, &mut known, arguments)?;
        self.check_made_known(&arguments)?;
        self.check_cells(of.span, *id, types)?;
        let arguments = arguments.into_iter().map(ConstructorArgument::Value).collect();
        let of = InstanceKind::Extern(*id, types.to_vec());
        Ok(self.new_instance(Instance { declared, of, arguments }))
    }

    fn construct_block(
        &mut self,
        declared: Declared,
        id: BlockId,
        span: Span,
        arguments: &[ast::Argument],
    ) -> Checked<InstanceId> {
        // Count the call depth of an instance even if it is never applied.
        self.calls(self.depths.blocks[id.index()]);
        let parameters = self.block(id).constructor.clone();
        let arguments = self.arguments(span, &parameters, &mut [], arguments)?;
        self.check_made_known(&arguments)?;
        let arguments = arguments.into_iter().map(ConstructorArgument::Value).collect();
        Ok(self.new_instance(Instance { declared, of: InstanceKind::Block(id), arguments }))
    }

    /// Reports an error unless all arguments are known at elaboration.
    fn check_made_known(&mut self, arguments: &[Expression]) -> Checked<()> {
        match arguments.iter().find(|one| !is_made_known(one)) {
            Some(one) => {
                let message = "constructor arguments must be compile-time constants";
                self.wrong(one.span, message)
            }
            None => Ok(()),
        }
    }

    /// Checks the argument for a parser or control parameter of a package: `Name()` or the name of
    /// an instance.
    pub(super) fn package_argument(
        &mut self,
        written: &ast::Expression,
        parameter: &Parameter,
    ) -> Checked<(InstanceId, BlockId)> {
        let (name, arguments, makes) = match &written.kind {
            Kind::Name(_) => (written, &[][..], false),
            Kind::Call(callee, _, arguments) => (&**callee, &arguments[..], true),
            _ => (written, &[][..], false),
        };
        let Kind::Name(text) = &name.kind else {
            return self.wrong(written.span, "expected a parser or a control");
        };
        match (self.find_text(text, name.span)?, makes) {
            (Symbol::Block(id), true) => {
                let declared = Declared { span: written.span, ..parameter.declared.clone() };
                let instance = self.construct_block(declared, id, written.span, arguments)?;
                Ok((instance, id))
            }
            (Symbol::Block(_), false) => {
                let diagnostic =
                    Diagnostic::error(written.span, format!("`{text}` is not made yet"));
                self.refuse(diagnostic.help(format!("`{text}()` makes one")))
            }
            (Symbol::Instance(id), false) => match self.program.instances[id.index()].of {
                InstanceKind::Block(block) => Ok((id, block)),
                InstanceKind::Extern(..) => {
                    self.wrong(written.span, format!("`{text}` is not a parser or control"))
                }
            },
            (Symbol::Wrong, _) => Err(Reported),
            _ => self.wrong(written.span, format!("`{text}` is not a parser or control")),
        }
    }

    /// Checks constructor parameters. Only values are supported.
    pub(super) fn constructor_parameters(
        &mut self,
        parameters: &[ast::Parameter],
    ) -> Checked<Vec<Parameter>> {
        let all = self.prototype_parameters(parameters)?;
        for (at, parameter) in all.iter().enumerate() {
            let span = parameter.declared.span;
            if matches!(parameter.of, Type::Extern(..)) || is_generic(&parameter.of) {
                return self.unsupported(span, "an object that a constructor takes");
            }
            let symbol = Symbol::ConstructorParameter(at, parameter.of.clone());
            let name = ast::Name { text: parameter.declared.name.clone(), span };
            self.declare(&name, symbol);
        }
        Ok(all)
    }
}

/// Returns true if the value is known once the enclosing block is instantiated.
pub(super) fn is_made_known(value: &Expression) -> bool {
    use ExpressionKind as K;
    match &value.kind {
        K::Constant(_) | K::Invalid | K::ConstructorParameter(_) => true,
        K::Fields(all) => all.iter().all(is_made_known),
        K::Unary(_, of) | K::Cast(of) | K::Slice(of, ..) | K::Field(of, _) => is_made_known(of),
        K::Binary(_, one, other) => is_made_known(one) && is_made_known(other),
        K::Choose(condition, yes, no) => {
            is_made_known(condition) && is_made_known(yes) && is_made_known(no)
        }
        _ => false,
    }
}
