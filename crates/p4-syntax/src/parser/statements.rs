//! Statements.

use super::{Parsed, Parser, Reported};
use crate::ast::{
    Binary, Block, Declaration, DeclarationKind, Expression, ExpressionKind, Name, Statement,
    StatementKind as Kind, SwitchCase, Type,
};
use crate::diagnostic::Diagnostic;

/// Compound assignment operators.
const ASSIGNMENTS: [(&str, Binary); 10] = [
    ("+=", Binary::Add),
    ("-=", Binary::Subtract),
    ("|+|=", Binary::AddSaturating),
    ("|-|=", Binary::SubtractSaturating),
    ("*=", Binary::Multiply),
    ("/=", Binary::Divide),
    ("%=", Binary::Modulo),
    ("<<=", Binary::ShiftLeft),
    ("&=", Binary::And),
    ("^=", Binary::Xor),
];

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let start = self.here();
        let statements = self.members(Self::statement)?;
        Ok(Block { span: self.since(start), statements })
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.nested(|parser| {
            let start = parser.here();
            let kind = parser.statement_kind()?;
            Ok(Statement { span: parser.since(start), kind })
        })
    }

    fn statement_kind(&mut self) -> Parsed<Kind> {
        let next = self.next();
        match &*next.text {
            ";" => {
                self.advance();
                Ok(Kind::Empty)
            }
            "{" | "@" => {
                // Annotations of a block are ignored.
                let annotations = self.annotations()?;
                if self.at("{") {
                    Ok(Kind::Block(self.block()?))
                } else {
                    self.declaration_within(annotations)
                }
            }
            "if" => self.if_statement(),
            "switch" => self.switch_statement(),
            "for" => self.for_statement(),
            "break" | "continue" | "exit" => {
                self.advance();
                self.expect(";")?;
                Ok(match &*next.text {
                    "break" => Kind::Break,
                    "continue" => Kind::Continue,
                    _ => Kind::Exit,
                })
            }
            "return" => {
                self.advance();
                let value = if self.at(";") { None } else { Some(self.expression()?) };
                self.expect(";")?;
                Ok(Kind::Return(value))
            }
            "const" => self.declaration_within(Vec::new()),
            _ => {
                self.check_word()?;
                if let Some(declared) =
                    self.attempt(|parser| parser.variable_or_instance(Vec::new()))
                {
                    return Ok(Kind::Declare(Box::new(declared)));
                }
                // Parse everything that looks like a declaration as one, for a better error
                // message.
                if self.is_declaration() {
                    return self.declaration_within(Vec::new());
                }
                let kind = self.assignment_or_call()?;
                self.expect(";")?;
                Ok(kind)
            }
        }
    }

    fn declaration_within(&mut self, annotations: Vec<crate::ast::Annotation>) -> Parsed<Kind> {
        let declared = if self.at("const") {
            self.constant(annotations)?
        } else {
            self.variable_or_instance(annotations)?
        };
        Ok(Kind::Declare(Box::new(declared)))
    }

    /// Returns true if a type and a name follow.
    fn is_declaration(&mut self) -> bool {
        let at = self.at;
        let is = self.attempt(|parser| {
            parser.parse_type()?;
            parser.name("a name")
        });
        self.at = at;
        is.is_some()
    }

    /// Parses `TYPE name;`, `TYPE name = value;` or `TYPE(arguments) name;`.
    pub(super) fn variable_or_instance(
        &mut self,
        annotations: Vec<crate::ast::Annotation>,
    ) -> Parsed<Declaration> {
        let of = self.parse_type()?;
        let (name, kind) = if self.at("(") {
            let arguments = self.arguments()?;
            let name = self.name("the instance's name")?;
            if self.at("=") {
                let span = self.here();
                let message = "instances with a body (abstract methods) are not supported";
                self.problems.add(Diagnostic::error(span, message));
                return Err(Reported);
            }
            (name, DeclarationKind::Instance(of, arguments))
        } else {
            let name = self.name("a variable's name")?;
            let value = if self.take("=") { Some(self.expression()?) } else { None };
            (name, DeclarationKind::Variable(of, value))
        };
        self.expect(";")?;
        Ok(Declaration { annotations, name, type_parameters: Vec::new(), kind })
    }

    /// Parses an assignment or a call without a semicolon, as in the header of a `for`.
    fn assignment_or_call(&mut self) -> Parsed<Kind> {
        let left = self.expression()?;
        if self.take("=") {
            return Ok(Kind::Assign(left, None, self.expression()?));
        }
        let found = ASSIGNMENTS.iter().find(|(mark, _)| self.at(mark)).map(|(_, found)| *found);
        let operator = match found {
            Some(operator) => {
                self.advance();
                Some(operator)
            }
            None if self.take("|=") => Some(Binary::Or),
            None if self.at(">") && self.look(1).is(">=") && !self.look(1).spaced => {
                self.advance();
                self.advance();
                Some(Binary::ShiftRight)
            }
            None => None,
        };
        match operator {
            Some(operator) => Ok(Kind::Assign(left, Some(operator), self.expression()?)),
            None if matches!(left.kind, ExpressionKind::Call(..)) => Ok(Kind::Call(left)),
            None => Err(self.no_statement(&left)),
        }
    }

    fn no_statement(&mut self, value: &Expression) -> Reported {
        if !self.at(";") {
            return self.unexpected("`=`, or `;` after a call");
        }
        let diagnostic = Diagnostic::error(value.span, "this value is not used");
        let diagnostic = diagnostic.label("expected an assignment or a call");
        self.problems.add(match &value.kind {
            ExpressionKind::Name(name) if matches!(&**name, "accept" | "reject") => {
                diagnostic.help(format!("write `transition {name};`"))
            }
            ExpressionKind::Name(name) => diagnostic.help(format!(
                "`{name}.apply();` applies a table or a control, and `{name}();` calls an action"
            )),
            _ => diagnostic,
        });
        Reported
    }

    fn if_statement(&mut self) -> Parsed<Kind> {
        self.expect("if")?;
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let yes = Box::new(self.statement()?);
        let no = if self.take("else") { Some(Box::new(self.statement()?)) } else { None };
        Ok(Kind::If(condition, yes, no))
    }

    fn switch_statement(&mut self) -> Parsed<Kind> {
        self.expect("switch")?;
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        let cases = self.members(|parser| {
            let start = parser.here();
            let label = if parser.take("default") { None } else { Some(parser.expression()?) };
            let span = parser.since(start);
            parser.expect(":")?;
            let body = if parser.at("{") { Some(parser.block()?) } else { None };
            Ok(SwitchCase { label, span, body })
        })?;
        Ok(Kind::Switch(value, cases))
    }

    fn for_statement(&mut self) -> Parsed<Kind> {
        self.expect("for")?;
        self.expect("(")?;
        if let Some((of, name)) = self.attempt(Self::for_in) {
            let first = self.set()?;
            self.expect(")")?;
            let body = Box::new(self.statement()?);
            return Ok(Kind::ForIn(of, name, first, body));
        }
        let first = if self.at(";") { Vec::new() } else { self.for_parts()? };
        self.expect(";")?;
        let condition = if self.at(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let each = if self.at(")") { Vec::new() } else { self.for_parts()? };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        Ok(Kind::For(first, condition, each, body))
    }

    fn for_in(&mut self) -> Parsed<(Type, Name)> {
        let of = self.parse_type()?;
        let name = self.name("a variable's name")?;
        self.expect("in")?;
        Ok((of, name))
    }

    fn for_parts(&mut self) -> Parsed<Vec<Statement>> {
        let mut parts = Vec::new();
        loop {
            let start = self.here();
            let declared = self
                .attempt(|parser| Ok((parser.parse_type()?, parser.name("a variable's name")?)));
            let kind = match declared {
                Some((of, name)) => {
                    let value = if self.take("=") { Some(self.expression()?) } else { None };
                    let kind = DeclarationKind::Variable(of, value);
                    let (annotations, type_parameters) = (Vec::new(), Vec::new());
                    Kind::Declare(Box::new(Declaration {
                        annotations,
                        name,
                        type_parameters,
                        kind,
                    }))
                }
                None => self.assignment_or_call()?,
            };
            parts.push(Statement { span: self.since(start), kind });
            if !self.take(",") {
                return Ok(parts);
            }
        }
    }
}
