//! Types, type arguments and type parameters.

use super::{MAX_NESTING, Parsed, Parser};
use crate::ast::{Expression, ExpressionKind, Name, Type, TypeKind};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses a type, including the sizes of header stacks.
    pub(super) fn parse_type(&mut self) -> Parsed<Type> {
        self.nested(|parser| {
            let start = parser.next().span;
            let mut found = parser.base_type()?;
            let mut dimensions = 0;
            while parser.take("[") {
                dimensions += 1;
                if dimensions > MAX_NESTING {
                    return parser.too_deep();
                }
                let size = parser.expression()?;
                parser.expect("]")?;
                let kind = TypeKind::Stack(Box::new(found), Box::new(size));
                found = Type { span: parser.since(start), kind };
            }
            Ok(found)
        })
    }

    fn base_type(&mut self) -> Parsed<Type> {
        let next = self.next();
        let start = next.span;
        let word = if next.kind == Kind::Word { &*next.text } else { "" };
        let kind = match word {
            "bool" | "string" | "error" | "match_kind" | "void" | "_" => {
                self.advance();
                match word {
                    "bool" => TypeKind::Bool,
                    "string" => TypeKind::String,
                    "error" => TypeKind::Error,
                    "match_kind" => TypeKind::MatchKind,
                    "void" => TypeKind::Void,
                    _ => TypeKind::Any,
                }
            }
            "int" | "bit" => {
                self.advance();
                let signed = word == "int";
                match self.width()? {
                    Some(width) => TypeKind::Bits { width: Box::new(width), signed },
                    None if signed => TypeKind::Int,
                    // The specification's shorthand for `bit<1>`.
                    None => {
                        let one = crate::number::Integer { value: 1.into(), width: None };
                        let kind = ExpressionKind::Integer(one);
                        let width = Box::new(Expression { span: start, kind });
                        TypeKind::Bits { width, signed }
                    }
                }
            }
            "varbit" => {
                self.advance();
                match self.width()? {
                    Some(width) => TypeKind::Varbit(Box::new(width)),
                    None => return Err(self.unexpected("`<` and the most bits that it may have")),
                }
            }
            "tuple" => {
                self.advance();
                TypeKind::Tuple(self.type_arguments()?)
            }
            "list" if self.look(1).is("<") => {
                self.advance();
                let mut of = self.type_arguments()?;
                match (of.pop(), of.is_empty()) {
                    (Some(one), true) => TypeKind::List(Box::new(one)),
                    _ => return Err(self.unexpected("a list's one type")),
                }
            }
            _ => {
                self.take(".");
                let name = self.name("a type")?;
                let arguments = if self.at("<") { self.type_arguments()? } else { Vec::new() };
                TypeKind::Named(name, arguments)
            }
        };
        Ok(Type { span: self.since(start), kind })
    }

    /// Parses `<8>` or `<(expression)>`.
    fn width(&mut self) -> Parsed<Option<Expression>> {
        if !self.take("<") {
            return Ok(None);
        }
        // A comparison would consume the closing `>`.
        let width =
            if self.at("(") || self.next().kind == Kind::Integer || Self::is_name(self.next()) {
                self.primary()?
            } else {
                return Err(self.unexpected("a width, or an expression in brackets"));
            };
        self.expect(">")?;
        Ok(Some(width))
    }

    /// Parses `<TYPE, TYPE>`.
    pub(super) fn type_arguments(&mut self) -> Parsed<Vec<Type>> {
        self.expect("<")?;
        self.list(">", Self::parse_type)
    }

    /// Parses the optional type parameters `<T, U>` after a name.
    pub(super) fn type_parameters(&mut self) -> Parsed<Vec<Name>> {
        if !self.take("<") {
            return Ok(Vec::new());
        }
        let names = self.list(">", |parser| parser.name("a type's name"))?;
        self.types.extend(names.iter().map(|name| name.text.clone()));
        Ok(names)
    }
}
