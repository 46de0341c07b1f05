//! Extern objects, extern functions and functions (P4_16 specification, sections 7.2.9 and 10).

use std::collections::HashSet;
use std::sync::Arc;

use p4_syntax::ast::{self, Direction};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::foreign::foreign;
use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, declared};
use crate::ir::{
    Extern, ExternFunctionId, ExternId, Function, FunctionId, Parameter, Prototype, Type,
};
use crate::model::Object;

impl Checker<'_> {
    /// Runs `inside` in a scope with type parameters, numbered from `first`.
    pub(super) fn with_generic<T>(
        &mut self,
        names: &[ast::Name],
        first: usize,
        inside: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.scopes.open();
        for (at, name) in (first as u32..).zip(names) {
            self.declare(name, Symbol::Type(Type::Parameter(at)));
        }
        let result = inside(self);
        self.scopes.close();
        result
    }

    pub(super) fn prototype_parameters(
        &mut self,
        parameters: &[ast::Parameter],
    ) -> Checked<Vec<Parameter>> {
        let mut names: HashSet<&str> = HashSet::new();
        let mut all = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            if !names.insert(&parameter.name.text) {
                let name = &parameter.name.text;
                return self.wrong(parameter.name.span, format!("duplicate parameter `{name}`"));
            }
            let of = self.type_of(&parameter.of)?;
            let default = match &parameter.default {
                Some(value) => Some(self.expression_as(value, &of)?),
                None => None,
            };
            all.push(Parameter {
                declared: declared(&parameter.name, &parameter.annotations),
                of,
                direction: parameter.direction,
                default,
            });
        }
        Ok(all)
    }

    pub(super) fn extern_object(
        &mut self,
        written: &ast::Declaration,
        methods: &[ast::Method],
    ) -> Checked<()> {
        let generic = &written.type_parameters;
        let id = ExternId(self.program.externs.len() as u32);
        self.program.externs.push(Extern {
            declared: declared(&written.name, &written.annotations),
            generic: generic.iter().map(|name| name.text.clone()).collect(),
            constructors: Vec::new(),
            methods: Vec::new(),
            object: Object::named(&written.name.text),
        });
        // Its methods may refer to it.
        let symbol = match generic.len() {
            0 => Symbol::Type(Type::Extern(id, Arc::new([]))),
            _ => Symbol::GenericExtern(id),
        };
        self.declare(&written.name, symbol);
        self.with_generic(generic, 0, |checker| {
            for method in methods {
                let Ok(prototype) = checker.method_prototype(method, generic.len()) else {
                    continue;
                };
                let of = &mut checker.program.externs[id.index()];
                match method.returns {
                    Some(_) => of.methods.push(prototype),
                    None => of.constructors.push(prototype),
                }
            }
        });
        Ok(())
    }

    fn method_prototype(&mut self, method: &ast::Method, outer: usize) -> Checked<Prototype> {
        self.with_generic(&method.type_parameters, outer, |checker| {
            let parameters = checker.prototype_parameters(&method.parameters)?;
            let returns = match &method.returns {
                Some(of) => checker.type_of(of)?,
                None => Type::Void,
            };
            Ok(Prototype {
                declared: declared(&method.name, &method.annotations),
                generic: method.type_parameters.iter().map(|name| name.text.clone()).collect(),
                parameters,
                returns,
            })
        })
    }

    pub(super) fn extern_function(
        &mut self,
        written: &ast::Declaration,
        returns: &ast::Type,
        parameters: &[ast::Parameter],
    ) {
        let generic = &written.type_parameters;
        let prototype = self.with_generic(generic, 0, |checker| {
            let parameters = checker.prototype_parameters(parameters)?;
            Checked::Ok(Prototype {
                declared: declared(&written.name, &written.annotations),
                generic: generic.iter().map(|name| name.text.clone()).collect(),
                parameters,
                returns: checker.type_of(returns)?,
            })
        });
        let prototype = prototype.and_then(|prototype| match foreign(&self.program, &prototype) {
            Ok(_) => Ok(prototype),
            Err(why) => self.wrong(written.name.span, why),
        });
        let Ok(prototype) = prototype else {
            self.declare(&written.name, Symbol::Wrong);
            return;
        };
        let id = ExternFunctionId(self.program.extern_functions.len() as u32);
        self.program.extern_functions.push(prototype);
        match self.scopes.innermost(&written.name.text) {
            Some(Symbol::ExternFunctions(all)) => all.push(id),
            _ => self.declare(&written.name, Symbol::ExternFunctions(vec![id])),
        }
    }

    pub(super) fn function(
        &mut self,
        written: &ast::Declaration,
        returns: &ast::Type,
        parameters: &[ast::Parameter],
        body: &ast::Block,
    ) {
        let name = &written.name;
        let before = match self.scopes.innermost(&name.text) {
            Some(Symbol::Functions(all)) => all.clone(),
            _ => Vec::new(),
        };
        if before.is_empty() {
            self.declare(name, Symbol::Unfinished);
        }
        let checked = self.measured(name.span, |checker| {
            checker.function_body(written, returns, parameters, body)
        });
        let symbol = match checked {
            Ok((function, depth)) => {
                let id = FunctionId(self.program.functions.len() as u32);
                self.program.functions.push(function);
                self.depths.functions.push(depth);
                Symbol::Functions(before.iter().copied().chain([id]).collect())
            }
            Err(Reported) => Symbol::Wrong,
        };
        match self.scopes.innermost(&name.text) {
            Some(place) => *place = symbol,
            None => self.declare(name, symbol),
        }
    }

    fn function_body(
        &mut self,
        written: &ast::Declaration,
        returns: &ast::Type,
        parameters: &[ast::Parameter],
        body: &ast::Block,
    ) -> Checked<Function> {
        if let Some(parameter) = written.type_parameters.first() {
            return self.unsupported(parameter.span, "a function that is generic");
        }
        let span = returns.span;
        let returns = self.type_of(returns)?;
        if returns != Type::Void && !super::statements::is_of_packets(&returns) {
            let what = self.describe(&returns);
            return self.wrong(span, format!("a function cannot return {what}"));
        }
        self.within(Place::Function, |checker| {
            let parameters = checker.declare_parameters(parameters)?;
            checker.returns = returns.clone();
            let statements = checker.statements(&body.statements);
            checker.returns = Type::Void;
            let statements = statements?;
            if returns != Type::Void && !super::statements::always_returns(&statements) {
                let end = Span { start: body.span.end.saturating_sub(1), end: body.span.end };
                let what = checker.describe(&returns);
                let diagnostic = Diagnostic::error(end, "not every way through ends in `return`");
                return checker.refuse(diagnostic.label(format!("expected {what} to be returned")));
            }
            let declared = declared(&written.name, &written.annotations);
            Ok(Function { declared, parameters, returns: returns.clone(), body: statements })
        })
    }

    /// Declares parameters as variables.
    pub(super) fn declare_parameters(
        &mut self,
        parameters: &[ast::Parameter],
    ) -> Checked<Vec<crate::ir::VariableId>> {
        let mut all = Vec::with_capacity(parameters.len());
        let mut wrong = false;
        for parameter in parameters {
            let Ok(of) = self.type_of(&parameter.of) else {
                self.declare(&parameter.name, Symbol::Wrong);
                wrong = true;
                continue;
            };
            if !super::statements::is_of_packets(&of) {
                let what = self.describe(&of);
                let _ = self.wrong::<()>(
                    parameter.name.span,
                    format!("a parameter cannot be of type {what}"),
                );
                wrong = true;
            }
            if matches!(of, Type::Extern(..)) && parameter.direction != Direction::None {
                let message = "an extern parameter cannot have a direction";
                let _ = self.wrong::<()>(parameter.name.span, message);
            }
            if let Some(default) = &parameter.default {
                let _ = self.unsupported::<()>(default.span, "a value by default here");
            }
            let declared = declared(&parameter.name, &parameter.annotations);
            let id = self.new_variable(declared, of, Some(parameter.direction));
            self.declare(&parameter.name, Symbol::Variable(id));
            all.push(id);
        }
        if wrong { Err(Reported) } else { Ok(all) }
    }
}
