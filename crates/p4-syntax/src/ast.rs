//! Abstract syntax tree of a program (P4_16 specification, appendix G). Every node has its source
//! span.

use std::sync::Arc;

use crate::number::Integer;
use crate::source::Span;

/// A name and its source span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: Arc<str>,
    /// Source span.
    pub span: Span,
}

/// An annotation: `@name`, `@name(…)` or `@name[…]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// Name of the annotation.
    pub name: Name,
    /// Tokens of its body. They stay unparsed, because each annotation defines its own grammar.
    pub body: Vec<Arc<str>>,
}

/// A whole program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Declarations, in source order.
    pub declarations: Vec<Declaration>,
}

/// A declaration, at top level or nested in another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Annotations of the declaration.
    pub annotations: Vec<Annotation>,
    /// The declared name. For `error` and `match_kind`, which extend one enumeration, the name of
    /// that enumeration.
    pub name: Name,
    /// Type parameters.
    pub type_parameters: Vec<Name>,
    /// The kind of declaration, with its content.
    pub kind: DeclarationKind,
}

/// The kinds of declarations.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclarationKind {
    /// `const TYPE name = value;`
    Constant(Type, Expression),
    /// `TYPE name = value;`
    Variable(Type, Option<Expression>),
    /// `TYPE(arguments) name;`
    Instance(Type, Vec<Argument>),
    /// `typedef TYPE name;`
    Typedef(Type),
    /// `type TYPE name;`: a new type, distinct from every other.
    NewType(Type),
    /// `header name { … }`
    Header(Vec<Field>),
    /// `header_union name { … }`
    HeaderUnion(Vec<Field>),
    /// `struct name { … }`
    Struct(Vec<Field>),
    /// `enum name { … }` or `enum TYPE name { a = 1, … }`
    Enum(Option<Type>, Vec<(Name, Option<Expression>)>),
    /// `error { … }`
    Error(Vec<Name>),
    /// `match_kind { … }`
    MatchKind(Vec<Name>),
    /// `extern name { … }` with its methods. A constructor has the name of the extern.
    ExternObject(Vec<Method>),
    /// `extern TYPE name(…);`
    ExternFunction(Type, Vec<Parameter>),
    /// `TYPE name(…) { … }`
    Function(Type, Vec<Parameter>, Block),
    /// `action name(…) { … }`
    Action(Vec<Parameter>, Block),
    /// `table name { … }`
    Table(Table),
    /// `value_set<TYPE>(size) name;`
    ValueSet(Type, Expression),
    /// `parser name(…);`
    ParserType(Vec<Parameter>),
    /// `control name(…);`
    ControlType(Vec<Parameter>),
    /// `package name(…);`
    Package(Vec<Parameter>),
    /// `parser name(…)(…) { … }`
    Parser(Parser),
    /// `control name(…)(…) { … apply { … } }`
    Control(Control),
}

/// A field of a header, a header union or a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Annotations of the field.
    pub annotations: Vec<Annotation>,
    /// Type of the field.
    pub of: Type,
    /// Name of the field.
    pub name: Name,
}

/// A method of an extern object.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Annotations of the method.
    pub annotations: Vec<Annotation>,
    /// Return type; None for a constructor.
    pub returns: Option<Type>,
    /// Name of the method.
    pub name: Name,
    /// Type parameters.
    pub type_parameters: Vec<Name>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
}

/// Direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// No direction: the argument is known at compile time, or the control plane supplies it.
    None,
    /// `in`: from the caller to the callee.
    In,
    /// `out`: from the callee to the caller.
    Out,
    /// `inout`: in both directions.
    InOut,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Annotations of the parameter.
    pub annotations: Vec<Annotation>,
    /// Direction.
    pub direction: Direction,
    /// Type of the parameter.
    pub of: Type,
    /// Name of the parameter.
    pub name: Name,
    /// Default value, for calls without an argument.
    pub default: Option<Expression>,
}

/// A parser.
#[derive(Debug, Clone, PartialEq)]
pub struct Parser {
    /// Parameters of `apply`.
    pub parameters: Vec<Parameter>,
    /// Constructor parameters.
    pub constructor: Vec<Parameter>,
    /// Local declarations before the states.
    pub locals: Vec<Declaration>,
    /// Parser states.
    pub states: Vec<State>,
}

/// A parser state.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Annotations of the state.
    pub annotations: Vec<Annotation>,
    /// Name of the state.
    pub name: Name,
    /// Statements of the state.
    pub body: Vec<Statement>,
    /// The transition statement; None for an implicit transition to `reject`.
    pub transition: Option<Transition>,
}

/// The transition out of a parser state.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// An unconditional transition to this state.
    To(Name),
    /// A transition to the state of the first matching case.
    Select {
        /// Source span of `select(…)`.
        span: Span,
        /// The selector expressions.
        values: Vec<Expression>,
        /// The cases: a keyset for each selector, and the target state.
        cases: Vec<(Vec<Expression>, Name)>,
    },
}

/// A control.
#[derive(Debug, Clone, PartialEq)]
pub struct Control {
    /// Parameters of `apply`.
    pub parameters: Vec<Parameter>,
    /// Constructor parameters.
    pub constructor: Vec<Parameter>,
    /// Local declarations before `apply`.
    pub locals: Vec<Declaration>,
    /// The body, `apply { … }`.
    pub apply: Block,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Properties, in source order.
    pub properties: Vec<Property>,
}

/// A property of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Annotations of the property.
    pub annotations: Vec<Annotation>,
    /// True if the control plane may not change the property.
    pub constant: bool,
    /// Name of the property: `key`, `actions`, `entries`, `default_action`, `size` or an extension
    /// of the architecture.
    pub name: Name,
    /// Value of the property.
    pub value: PropertyValue,
}

/// Value of a table property.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// `key = { expression: match_kind; … }`
    Key(Vec<KeyElement>),
    /// `actions = { a; b(…); … }`
    Actions(Vec<(Vec<Annotation>, Expression)>),
    /// `entries = { (…): action(…); … }`
    Entries(Vec<Entry>),
    /// Value of any other property.
    Expression(Expression),
}

/// One field of a table key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyElement {
    /// Annotations of the key field.
    pub annotations: Vec<Annotation>,
    /// The expression to look up.
    pub expression: Expression,
    /// The match kind: `exact`, `lpm` and so on.
    pub match_kind: Name,
}

/// A table entry from the program's `entries` property.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Annotations of the entry.
    pub annotations: Vec<Annotation>,
    /// True if the control plane may not change the entry.
    pub constant: bool,
    /// `priority = …`.
    pub priority: Option<Expression>,
    /// The keysets, one for each key field.
    pub keys: Vec<Expression>,
    /// The action with its arguments.
    pub action: Expression,
}

/// Statements in braces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// Source span, including both braces.
    pub span: Span,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Source span of the statement.
    pub span: Span,
    /// The kind of statement.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `;`
    Empty,
    /// `left = right;`, or a compound assignment such as `left += right;` with its operator.
    Assign(Expression, Option<Binary>, Expression),
    /// `f(…);`
    Call(Expression),
    /// `if (…) … else …`
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    /// `switch (…) { … }`
    Switch(Expression, Vec<SwitchCase>),
    /// `for (…; …; …) …`
    For(Vec<Statement>, Option<Expression>, Vec<Statement>, Box<Statement>),
    /// `for (TYPE name in …) …`
    ForIn(Type, Name, Expression, Box<Statement>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return …;`
    Return(Option<Expression>),
    /// `exit;`
    Exit,
    /// `{ … }`
    Block(Block),
    /// Declaration of a variable, a constant or an instance.
    Declare(Box<Declaration>),
}

/// A case of a `switch`.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchCase {
    /// The label; None for `default`.
    pub label: Option<Expression>,
    /// Source span of the label.
    pub span: Span,
    /// The body; None if the case falls through to the next one.
    pub body: Option<Block>,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// Source span of the type.
    pub span: Span,
    /// The kind of type.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `int`, of arbitrary precision
    Int,
    /// `bit<W>`, or `int<W>` if signed
    Bits {
        /// Width in bits.
        width: Box<Expression>,
        /// True for a signed type, in two's complement.
        signed: bool,
    },
    /// `varbit<W>`
    Varbit(Box<Expression>),
    /// `string`
    String,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `void`
    Void,
    /// `_`: don't care
    Any,
    /// A type name and its type arguments
    Named(Name, Vec<Type>),
    /// `TYPE[size]`
    Stack(Box<Type>, Box<Expression>),
    /// `tuple<…>`
    Tuple(Vec<Type>),
    /// `list<TYPE>`
    List(Box<Type>),
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Name of the parameter, for a named argument.
    pub name: Option<Name>,
    /// The value; None for `_`.
    pub value: Option<Expression>,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Source span of the expression.
    pub span: Span,
    /// The kind of expression.
    pub kind: ExpressionKind,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// An integer literal.
    Integer(Integer),
    /// `true` or `false`.
    Bool(bool),
    /// A string literal.
    String(Arc<str>),
    /// A name.
    Name(Arc<str>),
    /// `.name`: a name at top level.
    TopName(Name),
    /// `this`.
    This,
    /// `default`, in a keyset.
    Default,
    /// `_`, in a keyset.
    DontCare,
    /// `...`: default values for all remaining fields.
    Rest,
    /// `{#}`: an invalid header.
    Invalid,
    /// `left.name`.
    Member(Box<Expression>, Name),
    /// `error.name`.
    ErrorMember(Name),
    /// `left[index]`.
    Index(Box<Expression>, Box<Expression>),
    /// `left[high:low]`.
    Slice(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `f<types>(arguments)`, or a constructor call.
    Call(Box<Expression>, Vec<Type>, Vec<Argument>),
    /// `(TYPE) value`.
    Cast(Type, Box<Expression>),
    /// A unary operation such as `-value`.
    Unary(Unary, Box<Expression>),
    /// A binary operation such as `left + right`.
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `condition ? yes : no`.
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
    /// `{a, b}`.
    List(Vec<Expression>),
    /// `{name = value, …}`, and true if the list ends in `...`.
    Struct(Vec<(Name, Expression)>, bool),
    /// `(a, b)`, in a keyset.
    Tuple(Vec<Expression>),
}

/// A unary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Minus,
    /// `+`
    Plus,
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `|+|`: addition that saturates at the largest value
    AddSaturating,
    /// `|-|`: subtraction that saturates at the smallest value
    SubtractSaturating,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `<=`
    LessOrEqual,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `|`
    Or,
    /// `++`: concatenation of the bits of both operands
    Concatenate,
    /// `&&`
    LogicalAnd,
    /// `||`
    LogicalOr,
    /// `&&&`: a keyset of a value and a mask
    Mask,
    /// `..`: a keyset of a lower and an upper bound
    Range,
}
