//! Arguments of calls (P4_16 specification, sections 6.8 and 8.20): matching them to parameters,
//! and copying them in and out.

use std::collections::HashMap;
use std::ptr;

use p4_syntax::ast::{self, Direction};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::evaluation::order_matters;
use super::{Checked, Checker, Reported};
use crate::ir::{Declared, Expression, ExpressionKind, Parameter, Type, VariableId};

/// The argument of each parameter; None for the default value.
type Matched<'a> = Vec<Option<&'a ast::Argument>>;

impl Checker<'_> {
    /// Checks the arguments of a call and returns them in the order of the parameters. Infers the
    /// type parameters from them.
    pub(super) fn arguments(
        &mut self,
        span: Span,
        parameters: &[Parameter],
        types: &mut [Option<Type>],
        given: &[ast::Argument],
    ) -> Checked<Vec<Expression>> {
        let matched = self.matched(span, parameters, given)?;
        let place =
            |argument: &&ast::Argument| given.iter().position(|one| ptr::eq(one, *argument));
        let is_in_order = matched.iter().flatten().map(place).is_sorted();
        let mut all = Vec::with_capacity(parameters.len());
        let mut wrong = false;
        for (parameter, argument) in parameters.iter().zip(matched) {
            match self.argument(span, parameter, types, argument) {
                Ok(argument) => all.push(argument),
                Err(Reported) => wrong = true,
            }
        }
        if wrong {
            return Err(Reported);
        }
        if !is_in_order && (order_matters(&all) || comes_back_twice(parameters, &all)) {
            return self.out_of_order(span, "parameters");
        }
        Ok(all)
    }

    /// Rejects values that depend on each other. The language evaluates them in source order
    /// (section 8.1), this compiler in the order of their declaration.
    pub(super) fn out_of_order<T>(&mut self, span: Span, declared: &str) -> Checked<T> {
        let why =
            format!("these values depend on their order, which is not that of the {declared}");
        let diagnostic = Diagnostic::error(span, why);
        self.refuse(diagnostic.help("write them in that order, or put them into variables first"))
    }

    /// Returns true if arguments of this number and with these names match the parameters.
    pub(super) fn may_take(parameters: &[Parameter], given: &[ast::Argument]) -> bool {
        let needed = parameters.iter().filter(|one| one.default.is_none()).count();
        let named = |argument: &ast::Argument| match &argument.name {
            Some(name) => parameters.iter().any(|one| one.declared.name == name.text),
            None => true,
        };
        (needed..=parameters.len()).contains(&given.len()) && given.iter().all(named)
    }

    fn matched<'a>(
        &mut self,
        span: Span,
        parameters: &[Parameter],
        given: &'a [ast::Argument],
    ) -> Checked<Matched<'a>> {
        let named = given.iter().filter(|one| one.name.is_some()).count();
        if named != 0 && named != given.len() {
            return self.wrong(span, "either all arguments have names, or none has");
        }
        if given.len() > parameters.len() {
            let diagnostic = Diagnostic::error(span, "there are too many arguments");
            let label = format!("{} given, expected {}", given.len(), listed(parameters));
            return self.refuse(diagnostic.label(label));
        }
        let mut by_name = HashMap::new();
        for argument in given {
            let Some(name) = &argument.name else { continue };
            if !parameters.iter().any(|one| one.declared.name == name.text) {
                let diagnostic =
                    Diagnostic::error(name.span, format!("no parameter `{}`", name.text));
                return self.refuse(diagnostic.label(format!("expected {}", listed(parameters))));
            }
            if by_name.insert(&*name.text, argument).is_some() {
                return self.wrong(name.span, format!("`{}` is given twice", name.text));
            }
        }
        let find = |(at, parameter): (usize, &Parameter)| match named {
            0 => given.get(at),
            _ => by_name.get(&*parameter.declared.name).copied(),
        };
        Ok(parameters.iter().enumerate().map(find).collect())
    }

    fn argument(
        &mut self,
        span: Span,
        parameter: &Parameter,
        types: &mut [Option<Type>],
        argument: Option<&ast::Argument>,
    ) -> Checked<Expression> {
        let name = &parameter.declared.name;
        let wanted = self.substitute(&parameter.of, types);
        let Some(argument) = argument else {
            return match &parameter.default {
                Some(default) => Ok(default.clone()),
                None => {
                    let diagnostic = Diagnostic::error(span, format!("`{name}` has no value"));
                    let (direction, what) =
                        (direction_text(parameter.direction), self.describe(&wanted));
                    self.refuse(
                        diagnostic.label(format!("expected {direction}{what} for `{name}`")),
                    )
                }
            };
        };
        let Some(value) = &argument.value else {
            if parameter.direction != Direction::Out || is_generic(&wanted) {
                let message = "`_` can only stand for an `out` argument whose value is not used";
                return self.wrong(span, message);
            }
            return Ok(self.unnamed_variable(span, wanted));
        };
        let generic = is_generic(&wanted);
        let found = self.expression(value, Some(&wanted).filter(|_| !generic))?;
        if generic && found.of == Type::Integer {
            let diagnostic = Diagnostic::error(value.span, "cannot infer the width of this number");
            return self.refuse(diagnostic.help("give it a width, as 32w1 has, or cast it"));
        }
        if generic && !Self::unify(&wanted, &found.of, types) {
            let (wanted, found) = (self.describe(&wanted), self.describe(&found.of));
            return self.wrong(value.span, format!("this is {found}, not {wanted}"));
        }
        let wanted = self.substitute(&wanted, types);
        match parameter.direction {
            Direction::In | Direction::None => self.convert(found, &wanted),
            Direction::Out | Direction::InOut => {
                self.check_place(&found)?;
                if found.of == wanted || wanted == Type::Any {
                    return Ok(found);
                }
                let (wanted, what) = (self.describe(&wanted), self.describe(&found.of));
                let diagnostic =
                    Diagnostic::error(value.span, format!("this is {what}, not {wanted}"));
                self.refuse(
                    diagnostic
                        .help(format!("`{name}` is out or inout: its type must match exactly")),
                )
            }
        }
    }

    /// Creates an unused variable.
    pub(super) fn unnamed_variable(&mut self, span: Span, of: Type) -> Expression {
        let declared = Declared { name: "_".into(), span, annotations: Vec::new() };
        let id = self.new_variable(declared, of.clone(), None);
        Expression { span, of, kind: ExpressionKind::Variable(id) }
    }

    /// Reports an error unless the expression is an l-value that may be written.
    pub(super) fn check_place(&mut self, place: &Expression) -> Checked<()> {
        if !place.is_place() {
            return self.wrong(place.span, "nothing can be put here: this is not a variable");
        }
        if let Some(why) = read_only(place) {
            return self.wrong(place.span, format!("nothing can be put here: {why}"));
        }
        self.note_written(place);
        let Some(root) = root(place) else { return Ok(()) };
        let variable = self.variable(root);
        let why = match variable.direction {
            Some(Direction::In) => "is `in`",
            Some(Direction::None) => "has no direction",
            _ => return Ok(()),
        };
        let (name, declared) = (variable.declared.name.clone(), variable.declared.span);
        let diagnostic = Diagnostic::error(place.span, format!("`{name}` cannot be changed"));
        let diagnostic = diagnostic.related(declared, format!("it {why}"));
        self.refuse(diagnostic.help("copy it to a variable, or make the parameter `inout`"))
    }

    /// Returns the parameters of a parser, a control, a function or an action.
    pub(super) fn parameters_of(&self, variables: &[VariableId]) -> Vec<Parameter> {
        let one = |id: &VariableId| {
            let variable = self.variable(*id);
            Parameter {
                declared: variable.declared.clone(),
                of: variable.of.clone(),
                direction: variable.direction.unwrap_or(Direction::None),
                default: None,
            }
        };
        variables.iter().map(one).collect()
    }
}

/// Returns true if two arguments are copied out to the same variable. The last copy would win.
fn comes_back_twice(parameters: &[Parameter], values: &[Expression]) -> bool {
    let comes_back = |direction| matches!(direction, Direction::Out | Direction::InOut);
    let both = parameters.iter().zip(values).filter(|(one, _)| comes_back(one.direction));
    let mut roots: Vec<_> = both.filter_map(|(_, value)| root(value)).collect();
    let count = roots.len();
    roots.sort_unstable();
    roots.dedup();
    roots.len() < count
}

/// Returns the variable that contains an l-value.
fn root(place: &Expression) -> Option<VariableId> {
    use ExpressionKind as K;
    match &place.kind {
        K::Variable(id) => Some(*id),
        K::Field(of, _) | K::Element(of, _) | K::Slice(of, ..) | K::Next(of) | K::Last(of) => {
            root(of)
        }
        _ => None,
    }
}

/// Returns the reason why an l-value is read-only, if it is (sections 8.13 and 8.18).
fn read_only(place: &Expression) -> Option<&'static str> {
    use ExpressionKind as K;
    match &place.kind {
        K::Field(of, _) if matches!(of.of, Type::Tuple(_)) => {
            Some("a tuple is only changed as a whole")
        }
        K::Last(_) => Some("`last` of a stack is only read"),
        K::Field(of, _) | K::Element(of, _) | K::Slice(of, ..) | K::Next(of) => read_only(of),
        _ => None,
    }
}

/// Returns true if the type contains a type parameter that a call must infer.
pub(super) fn is_generic(of: &Type) -> bool {
    match of {
        Type::Parameter(_) => true,
        Type::Stack(of, _) | Type::List(of) => is_generic(of),
        Type::Tuple(all) | Type::Extern(_, all) => all.iter().any(is_generic),
        _ => false,
    }
}

/// Formats the parameters that a call must supply.
pub(super) fn listed(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "none".into();
    }
    let one = |parameter: &Parameter| {
        format!("{}`{}`", direction_text(parameter.direction), parameter.declared.name)
    };
    parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the keyword of a direction, as a prefix of a type.
pub(super) fn direction_text(direction: Direction) -> &'static str {
    match direction {
        Direction::None => "",
        Direction::In => "in ",
        Direction::Out => "out ",
        Direction::InOut => "inout ",
    }
}
