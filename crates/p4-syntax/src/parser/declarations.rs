//! Top-level declarations.

use super::{Parsed, Parser, Reported};
use crate::ast::{
    Annotation, Declaration, DeclarationKind as Kind, Direction, Field, Method, Name, Parameter,
    Type,
};
use crate::lexer::Kind as TokenKind;

impl Parser<'_> {
    /// Parses a top-level declaration. Returns None for an empty declaration, `;`.
    pub(super) fn top_declaration(&mut self) -> Parsed<Option<Declaration>> {
        if self.take(";") {
            return Ok(None);
        }
        let annotations = self.annotations()?;
        self.check_word()?;
        let word = &*self.next().text;
        let declared = match word {
            "const" => self.constant(annotations)?,
            "extern" => self.extern_declaration(annotations)?,
            "action" => self.action(annotations)?,
            "parser" => self.parser(annotations)?,
            "control" => self.control(annotations)?,
            "package" => self.package(annotations)?,
            "header" | "header_union" | "struct" => self.fields_of(annotations)?,
            "enum" => self.enumeration(annotations)?,
            "error" | "match_kind" if self.look(1).is("{") => self.more_members(annotations)?,
            "typedef" => self.typedef(annotations)?,
            "type" if Self::is_type_declaration(self) => self.typedef(annotations)?,
            _ => self.function_or_instance(annotations)?,
        };
        Ok(Some(declared))
    }

    /// Returns true if `type` is a keyword here: it is one only before a type.
    fn is_type_declaration(&self) -> bool {
        !self.look(1).is("(") && !self.look(1).is("<")
    }

    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut found = Vec::new();
        while self.take("@") {
            let next = self.next();
            // Annotation names are not identifiers of the program, so keywords are allowed.
            if next.kind != TokenKind::Word {
                return Err(self.unexpected("an annotation's name"));
            }
            self.advance();
            let name = Name { text: next.text.clone(), span: next.span };
            let close = match &*self.next().text {
                "(" => ")",
                "[" => "]",
                _ => "",
            };
            let mut body = Vec::new();
            if !close.is_empty() {
                let open = self.advance().text.clone();
                let mut depth = 1;
                while depth > 0 {
                    let token = self.advance();
                    if token.kind == TokenKind::End {
                        return Err(self.unexpected(&format!("`{close}`")));
                    }
                    depth += usize::from(token.is(&open));
                    depth -= usize::from(token.is(close));
                    if depth > 0 {
                        body.push(token.text.clone());
                    }
                }
            }
            found.push(Annotation { name, body });
        }
        Ok(found)
    }

    pub(super) fn constant(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("const")?;
        let of = self.parse_type()?;
        let name = self.name("a constant's name")?;
        self.expect("=")?;
        let value = self.expression()?;
        self.expect(";")?;
        Ok(plain(annotations, name, Kind::Constant(of, value)))
    }

    fn extern_declaration(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("extern")?;
        let object = self.attempt(|parser| {
            let name = parser.name("the extern's name")?;
            let type_parameters = parser.type_parameters()?;
            if parser.at("{") || parser.at(";") {
                Ok((name, type_parameters))
            } else {
                Err(Reported)
            }
        });
        let Some((name, type_parameters)) = object else {
            let returns = self.parse_type()?;
            let name = self.name("the function's name")?;
            let type_parameters = self.type_parameters()?;
            let parameters = self.parameters()?;
            self.expect(";")?;
            let kind = Kind::ExternFunction(returns, parameters);
            return Ok(Declaration { annotations, name, type_parameters, kind });
        };
        self.types.insert(name.text.clone());
        let methods =
            if self.take(";") { Vec::new() } else { self.members(|parser| parser.method(&name))? };
        let kind = Kind::ExternObject(methods);
        Ok(Declaration { annotations, name, type_parameters, kind })
    }

    fn method(&mut self, of: &Name) -> Parsed<Method> {
        let annotations = self.annotations()?;
        let constructs = self.next().text == of.text && self.look(1).is("(");
        let returns = if constructs { None } else { Some(self.parse_type()?) };
        let name = self.name("a method's name")?;
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        self.expect(";")?;
        Ok(Method { annotations, returns, name, type_parameters, parameters })
    }

    /// Parses `(in TYPE name, …)`.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect("(")?;
        self.list(")", |parser| {
            let annotations = parser.annotations()?;
            let direction = match &*parser.next().text {
                "in" => Direction::In,
                "out" => Direction::Out,
                "inout" => Direction::InOut,
                _ => Direction::None,
            };
            if direction != Direction::None {
                parser.advance();
            }
            let of = parser.parse_type()?;
            let name = parser.name("a parameter's name")?;
            let default = if parser.take("=") { Some(parser.expression()?) } else { None };
            Ok(Parameter { annotations, direction, of, name, default })
        })
    }

    fn package(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("package")?;
        let name = self.name("the package's name")?;
        self.types.insert(name.text.clone());
        let type_parameters = self.type_parameters()?;
        let kind = Kind::Package(self.parameters()?);
        self.expect(";")?;
        Ok(Declaration { annotations, name, type_parameters, kind })
    }

    fn fields_of(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let what = self.advance();
        let name = self.name("its name")?;
        self.types.insert(name.text.clone());
        let type_parameters = self.type_parameters()?;
        let fields = self.members(|parser| {
            let annotations = parser.annotations()?;
            parser.check_word()?;
            let of = parser.parse_type()?;
            let name = parser.name("a field's name")?;
            parser.expect(";")?;
            Ok(Field { annotations, of, name })
        })?;
        let kind = match &*what.text {
            "header" => Kind::Header(fields),
            "struct" => Kind::Struct(fields),
            _ => Kind::HeaderUnion(fields),
        };
        Ok(Declaration { annotations, name, type_parameters, kind })
    }

    fn enumeration(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("enum")?;
        let of = if self.look(1).is("{") { None } else { Some(self.parse_type()?) };
        let name = self.name("the enumeration's name")?;
        self.types.insert(name.text.clone());
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            let member = self.name("a member's name")?;
            let value = if self.take("=") { Some(self.expression()?) } else { None };
            members.push((member, value));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(plain(annotations, name, Kind::Enum(of, members)))
    }

    /// Parses `error { … }` or `match_kind { … }`, which extend an existing enumeration.
    fn more_members(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let what = self.advance();
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            members.push(self.name("a member's name")?);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let name = Name { text: what.text.clone(), span: what.span };
        let kind = if what.is("error") { Kind::Error(members) } else { Kind::MatchKind(members) };
        Ok(plain(annotations, name, kind))
    }

    fn typedef(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let new = self.advance().is("type");
        let of = self.parse_type()?;
        let name = self.name("the type's new name")?;
        self.types.insert(name.text.clone());
        self.expect(";")?;
        let kind = if new { Kind::NewType(of) } else { Kind::Typedef(of) };
        Ok(plain(annotations, name, kind))
    }

    fn function_or_instance(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        if !self.begins_type() {
            return Err(self.unexpected("a declaration"));
        }
        if let Some((returns, name)) = self.attempt(|parser| {
            let returns = parser.parse_type()?;
            let name = parser.name("a name")?;
            if parser.at("(") || parser.at("<") { Ok((returns, name)) } else { Err(Reported) }
        }) {
            return self.function(annotations, returns, name);
        }
        let declared = self.variable_or_instance(annotations)?;
        if let Kind::Variable(..) = declared.kind {
            let message = "a variable belongs into a parser, a control or an action";
            let wrong = crate::diagnostic::Diagnostic::error(declared.name.span, message);
            self.problems.add(wrong.help("make it a constant: `const TYPE NAME = VALUE;`"));
        }
        Ok(declared)
    }

    fn function(
        &mut self,
        annotations: Vec<Annotation>,
        returns: Type,
        name: Name,
    ) -> Parsed<Declaration> {
        let type_parameters = self.type_parameters()?;
        let parameters = self.parameters()?;
        let kind = Kind::Function(returns, parameters, self.block()?);
        Ok(Declaration { annotations, name, type_parameters, kind })
    }

    /// Returns true if the next token can start a type.
    fn begins_type(&self) -> bool {
        const TYPES: [&str; 11] = [
            "bool",
            "bit",
            "int",
            "varbit",
            "string",
            "error",
            "match_kind",
            "void",
            "tuple",
            "list",
            ".",
        ];
        Self::is_name(self.next()) || TYPES.contains(&&*self.next().text)
    }
}

pub(super) fn plain(annotations: Vec<Annotation>, name: Name, kind: Kind) -> Declaration {
    Declaration { annotations, name, type_parameters: Vec::new(), kind }
}
