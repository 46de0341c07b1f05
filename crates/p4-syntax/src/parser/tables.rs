//! Tables.

use super::declarations::plain;
use super::{Parsed, Parser};
use crate::ast::{
    Annotation, Declaration, DeclarationKind, Entry, Expression, ExpressionKind, KeyElement,
    Property, PropertyValue, Table,
};

impl Parser<'_> {
    pub(super) fn table(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.expect("table")?;
        let name = self.name("the table's name")?;
        let properties = self.members(Self::property)?;
        Ok(plain(annotations, name, DeclarationKind::Table(Table { properties })))
    }

    fn property(&mut self) -> Parsed<Property> {
        let annotations = self.annotations()?;
        let constant = self.take("const");
        let name = self.name("`key`, `actions`, `entries`, `default_action` or `size`")?;
        self.expect("=")?;
        let value = match &*name.text {
            "key" => PropertyValue::Key(self.members(Self::key_element)?),
            "actions" => PropertyValue::Actions(self.members(|parser| {
                let annotations = parser.annotations()?;
                let action = parser.action_reference()?;
                parser.expect(";")?;
                Ok((annotations, action))
            })?),
            "entries" => PropertyValue::Entries(self.members(Self::entry)?),
            _ => {
                let value = self.expression()?;
                self.expect(";")?;
                PropertyValue::Expression(value)
            }
        };
        Ok(Property { annotations, constant, name, value })
    }

    fn key_element(&mut self) -> Parsed<KeyElement> {
        let expression = self.expression()?;
        self.expect(":")?;
        let match_kind = self.name("a match kind: exact, lpm, ternary, range or optional")?;
        let annotations = self.annotations()?;
        self.expect(";")?;
        Ok(KeyElement { annotations, expression, match_kind })
    }

    /// Parses `name` or `name(arguments)`.
    fn action_reference(&mut self) -> Parsed<Expression> {
        let start = self.here();
        let kind = if self.take(".") {
            ExpressionKind::TopName(self.name("an action's name")?)
        } else {
            ExpressionKind::Name(self.name("an action's name")?.text)
        };
        let action = Expression { span: self.since(start), kind };
        if !self.at("(") {
            return Ok(action);
        }
        let arguments = self.arguments()?;
        let kind = ExpressionKind::Call(Box::new(action), Vec::new(), arguments);
        Ok(Expression { span: self.since(start), kind })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let constant = self.take("const");
        let priority = if self.at("priority") && self.look(1).is("=") {
            self.advance();
            self.advance();
            let priority = self.primary()?;
            self.expect(":")?;
            Some(priority)
        } else {
            None
        };
        let keys = self.sets()?;
        self.expect(":")?;
        let action = self.action_reference()?;
        let annotations = self.annotations()?;
        self.expect(";")?;
        Ok(Entry { annotations, constant, priority, keys, action })
    }
}
