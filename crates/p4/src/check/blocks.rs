//! Controls, and the parts of the checker that they share with parsers (P4_16 specification,
//! section 14).

use p4_syntax::ast::{self, DeclarationKind};

use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, declared};
use crate::ir::{
    ActionId, Block, BlockBody, BlockId, InstanceId, Parameter, Statement, TableId, VariableId,
};

/// Parameters of a parser or a control.
pub(super) struct Opening {
    pub(super) parameters: Vec<VariableId>,
    pub(super) constructor: Vec<Parameter>,
}

impl Checker<'_> {
    pub(super) fn control(
        &mut self,
        written: &ast::Declaration,
        control: &ast::Control,
    ) -> Checked<()> {
        self.block_declaration(written, |checker| {
            checker.within(Place::ControlLocals, |checker| checker.control_body(written, control))
        })
    }

    /// Checks and declares a parser or a control.
    pub(super) fn block_declaration(
        &mut self,
        written: &ast::Declaration,
        body: impl FnOnce(&mut Self) -> Checked<Block>,
    ) -> Checked<()> {
        if let Some(parameter) = written.type_parameters.first() {
            return self.unsupported(parameter.span, "a parser or a control that is generic");
        }
        self.declare(&written.name, Symbol::Unfinished);
        let outside: Vec<InstanceId> = std::mem::take(&mut self.instances);
        let around = self.around.replace(written.name.span);
        let block = self.measured(written.name.span, body);
        self.around = around;
        let instances = std::mem::replace(&mut self.instances, outside);
        let (block, depth) = block?;
        let id = BlockId(self.program.blocks.len() as u32);
        self.program.blocks.push(Block { instances, ..block });
        self.depths.blocks.push(depth);
        self.declare(&written.name, Symbol::Block(id));
        Ok(())
    }

    pub(super) fn open_block(
        &mut self,
        parameters: &[ast::Parameter],
        constructor: &[ast::Parameter],
    ) -> Checked<Opening> {
        let constructor = self.constructor_parameters(constructor);
        let parameters = self.declare_parameters(parameters);
        Ok(Opening { parameters: parameters?, constructor: constructor? })
    }

    fn control_body(
        &mut self,
        written: &ast::Declaration,
        control: &ast::Control,
    ) -> Checked<Block> {
        let opening = self.open_block(&control.parameters, &control.constructor);
        let (first_table, first_action) = (self.program.tables.len(), self.program.actions.len());
        let mut locals: Vec<Statement> = Vec::new();
        let mut wrong = false;
        for local in &control.locals {
            match self.control_local(local) {
                Ok(statement) => locals.extend(statement),
                Err(Reported) => wrong = true,
            }
        }
        let (tables, actions) = (self.program.tables.len(), self.program.actions.len());
        let apply =
            self.within(Place::Apply, |checker| checker.statements(&control.apply.statements));
        let (opening, apply) = (opening?, apply?);
        if wrong {
            return Err(Reported);
        }
        self.check_direct(first_table..tables)?;
        Ok(Block {
            declared: declared(&written.name, &written.annotations),
            parameters: opening.parameters,
            constructor: opening.constructor,
            instances: Vec::new(),
            locals,
            body: BlockBody::Control {
                tables: (first_table..tables).map(|at| TableId(at as u32)).collect(),
                actions: (first_action..actions).map(|at| ActionId(at as u32)).collect(),
                apply,
            },
        })
    }

    fn control_local(&mut self, written: &ast::Declaration) -> Checked<Option<Statement>> {
        let result = match &written.kind {
            DeclarationKind::Action(parameters, body) => self.action(written, parameters, body),
            DeclarationKind::Table(table) => self.table(written, table),
            _ => return self.local(written),
        };
        if result.is_err() {
            self.declare(&written.name, Symbol::Wrong);
        }
        result.map(|()| None)
    }
}
