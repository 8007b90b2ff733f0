//! The meaning of names in linked modules, and the functions that a kernel can reach.
//!
//! Functions are numbered through all modules, those of the first module first.

use crate::execution::SystemCall;
use crate::ptx::ast::{
    AddressBase, FunctionId, GlobalId, InitialValue, Linkage as Visibility, Module, Operand, OperandKind, Parameter,
    Prototype, Statement, SymbolReference, Variable,
};
use crate::ptx::error::RawError;
use crate::ptx::source::Span;
use crate::ptx::types::StateSpace;
use crate::ptx::{PtxErrorKind, PtxErrors};
use std::collections::{BTreeMap, BTreeSet};

/// First of the addresses that stand for functions: outside device memory and the windows of generic addresses. The low 32 bits
/// are enough to tell functions apart, for programs whose addresses are that short.
const FUNCTION_ADDRESSES: u64 = 0x0300_0000_0000;
/// From one function's address to the next.
const FUNCTION_STRIDE: u64 = 16;

/// The meaning of a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A function with a body, by number.
    Function(u32),
    /// A function of the device runtime.
    System(SystemCall),
    /// No module defines it.
    Undefined,
}

/// A call through a register.
#[derive(Clone, Debug)]
struct IndirectCall {
    /// `.calltargets`: the only functions that it may reach, by number.
    listed: Option<Vec<u32>>,
    /// Bytes of the results and arguments, where a prototype tells them.
    shape: Option<Shape>,
}

/// Bytes of results and arguments: calls through a register reach functions of the same shape.
type Shape = (Vec<Option<u64>>, Vec<Option<u64>>);

/// The names in a function.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Functions called by name, as the module numbers them.
    callees: Vec<FunctionId>,
    indirect: Vec<IndirectCall>,
    /// Variables of its module.
    globals: Vec<GlobalId>,
    /// Kernels whose address it takes, by number.
    kernels: Vec<u32>,
}

/// Modules and the meaning of their names.
#[derive(Clone, Debug)]
pub(crate) struct Linkage {
    pub modules: Vec<Module>,
    /// Number of the first function of each module.
    first_function: Vec<u32>,
    /// Module and place in it, by number.
    functions: Vec<(u32, u32)>,
    /// By number.
    targets: Vec<Target>,
    /// For each variable of each module, the module and place of its definition.
    homes: Vec<Vec<(u32, u32)>>,
    /// For each variable of each module that lives in device memory and is defined there, its number among those.
    places: Vec<Vec<Option<u32>>>,
    /// The definitions in device memory.
    definitions: Vec<(u32, u32)>,
    facts: Vec<Facts>,
    /// The names in initial values of variables, by module and place: kernels, by number, and other variables of the module.
    initial_names: BTreeMap<(u32, u32), (Vec<u32>, Vec<GlobalId>)>,
    /// Functions whose address is taken, by number, ascending.
    address_taken: Vec<u32>,
    /// The kernels, by name and number.
    kernel_names: Vec<u32>,
    /// Bytes of the largest parameter variable: an argument list of unknown length may need as many.
    pub largest_argument: u32,
}

pub(crate) fn in_device_memory(variable: &Variable) -> bool {
    matches!(variable.space, StateSpace::Global | StateSpace::Constant)
}

fn shape_of(returns: &[Parameter], parameters: &[Parameter]) -> Shape {
    (returns.iter().map(Parameter::bytes).collect(), parameters.iter().map(Parameter::bytes).collect())
}

/// The mistake of naming a function that no module defines: in words of their own for those that programs get from CUDA.
pub(crate) fn absent_function(name: &str, span: Span) -> RawError {
    let message =
        crate::system_call::refusal(name).unwrap_or_else(|| format!("no module defines the function `{name}`"));
    RawError::new(PtxErrorKind::UnknownSymbol, span, message)
}

/// A definition that other modules see.
#[derive(Clone, Copy)]
struct Definition {
    module: u32,
    place: u32,
    visibility: Visibility,
    bytes: u64,
}

impl Linkage {
    /// Finds the meaning of every name.
    ///
    /// # Errors
    ///
    /// Names that several modules define.
    pub fn new(modules: Vec<Module>) -> Result<Self, PtxErrors> {
        let mut first_function = Vec::with_capacity(modules.len());
        let mut functions = Vec::new();
        for (number, module) in modules.iter().enumerate() {
            first_function.push(functions.len() as u32);
            functions.extend((0..module.functions.len() as u32).map(|place| (number as u32, place)));
        }
        let mut linkage = Linkage {
            first_function,
            functions,
            targets: Vec::new(),
            homes: Vec::new(),
            places: Vec::new(),
            definitions: Vec::new(),
            facts: Vec::new(),
            initial_names: BTreeMap::new(),
            address_taken: Vec::new(),
            kernel_names: Vec::new(),
            largest_argument: 0,
            modules,
        };
        linkage.find_functions()?;
        linkage.find_variables()?;
        linkage.find_facts();
        let mut kernels: Vec<u32> = linkage.kernels().collect();
        kernels.sort_by_key(|number| &*linkage.function(*number).1.name);
        linkage.kernel_names = kernels;
        Ok(linkage)
    }

    fn find_functions(&mut self) -> Result<(), PtxErrors> {
        let mut visible: BTreeMap<&str, Definition> = BTreeMap::new();
        let mut duplicates = Vec::new();
        // An alias is a definition of its own name.
        let mut aliased: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, module) in self.modules.iter().enumerate() {
            for alias in &module.aliases {
                let [name, target] = [alias.name, alias.target].map(|id| self.first_function[number] + id.0);
                aliased.insert(name, target);
            }
        }
        for (number, &(module, place)) in self.functions.iter().enumerate() {
            let function = &self.modules[module as usize].functions[place as usize];
            let is_alone = function.linkage == Visibility::Internal && !function.is_entry;
            if is_alone || (function.body.is_none() && !aliased.contains_key(&(number as u32))) {
                continue;
            }
            let found = Definition { module, place, visibility: function.linkage, bytes: 0 };
            self.define(&mut visible, &function.name, found, &mut duplicates);
        }
        if !duplicates.is_empty() {
            return Err(self.duplicates(duplicates, |module, place| {
                let function = &module.functions[place];
                (&function.name, function.span)
            }));
        }
        let mut targets = Vec::with_capacity(self.functions.len());
        for (number, &(module, place)) in self.functions.iter().enumerate() {
            let function = &self.modules[module as usize].functions[place as usize];
            let mut number = number as u32;
            let mut has_body = function.body.is_some();
            // The strongest definition of a name that modules share wins.
            let shared = function.linkage != Visibility::Internal || function.is_entry || !has_body;
            if let (true, Some(found)) = (shared, visible.get(&*function.name)) {
                number = self.first_function[found.module as usize] + found.place;
            }
            // A chain of aliases is no longer than the aliases are many.
            for _ in 0..=aliased.len() {
                let (module, place) = self.functions[number as usize];
                has_body = self.modules[module as usize].functions[place as usize].body.is_some();
                match aliased.get(&number) {
                    Some(target) if !has_body => number = *target,
                    _ => break,
                }
            }
            targets.push(match SystemCall::named(&function.name) {
                _ if has_body => Target::Function(number),
                Some(call) => Target::System(call),
                None => Target::Undefined,
            });
        }
        self.targets = targets;
        Ok(())
    }

    /// Notes a definition that other modules see. The strongest of several wins, and the first of weak ones.
    fn define<'a>(
        &'a self,
        visible: &mut BTreeMap<&'a str, Definition>,
        name: &'a str,
        found: Definition,
        duplicates: &mut Vec<(Definition, Definition)>,
    ) {
        let Some(known) = visible.get_mut(name) else {
            visible.insert(name, found);
            return;
        };
        let is_weak = |definition: &Definition| definition.visibility == Visibility::Weak;
        let is_common = |definition: &Definition| definition.visibility == Visibility::Common;
        match () {
            () if is_weak(&found) => {}
            () if is_weak(known) => *known = found,
            () if is_common(&found) && is_common(known) => {
                if found.bytes > known.bytes {
                    *known = found;
                }
            }
            () if is_common(&found) => {}
            () if is_common(known) => *known = found,
            () => duplicates.push((*known, found)),
        }
    }

    fn duplicates<'a>(
        &'a self,
        duplicates: Vec<(Definition, Definition)>,
        item: impl Fn(&'a Module, usize) -> (&'a str, crate::ptx::source::Span),
    ) -> PtxErrors {
        let mut raw = Vec::new();
        for (first, second) in duplicates {
            let [first_module, second_module] =
                [first, second].map(|definition| &self.modules[definition.module as usize]);
            let (_, there) = item(first_module, first.place as usize);
            let (name, here) = item(second_module, second.place as usize);
            let source = &first_module.source;
            let position = source.line_column(there.start);
            let message =
                format!("`{name}` is defined here and at {}:{}:{}", source.name(), position.line, position.column);
            raw.push((second.module, RawError::new(PtxErrorKind::Duplicate, here, message)));
        }
        self.errors(raw)
    }

    /// Ties mistakes to the texts of their modules.
    pub fn errors(&self, raw: Vec<(u32, RawError)>) -> PtxErrors {
        let mut by_module: BTreeMap<u32, Vec<RawError>> = BTreeMap::new();
        for (module, error) in raw {
            by_module.entry(module).or_default().push(error);
        }
        let mut all = PtxErrors { errors: Vec::new(), truncated: false };
        for (module, mut errors) in by_module {
            // Kernels that share functions share their mistakes; one function may be named by several.
            errors.sort_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)));
            errors.dedup_by(|a, b| a.span == b.span && a.message == b.message);
            let mut told = BTreeSet::new();
            errors.retain(|error| {
                let is_refusal = error.message.ends_with(crate::system_call::NOT_SIMULATED);
                !is_refusal || told.insert(error.message.clone())
            });
            all.truncated |= errors.len() > crate::ptx::error::MAXIMUM_ERRORS;
            errors.truncate(crate::ptx::error::MAXIMUM_ERRORS);
            all.errors.extend(PtxErrors::new(&self.modules[module as usize].source, errors, false).errors);
        }
        all
    }

    fn find_variables(&mut self) -> Result<(), PtxErrors> {
        let mut visible: BTreeMap<&str, Definition> = BTreeMap::new();
        let mut duplicates = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            for (place, global) in module.globals.iter().enumerate() {
                if matches!(global.linkage, Visibility::Internal | Visibility::External) {
                    continue;
                }
                let found = Definition {
                    module: number as u32,
                    place: place as u32,
                    visibility: global.linkage,
                    bytes: global.bytes().unwrap_or(0),
                };
                self.define(&mut visible, &global.name, found, &mut duplicates);
            }
        }
        if !duplicates.is_empty() {
            return Err(self.duplicates(duplicates, |module, place| {
                let global = &module.globals[place];
                (&global.name, global.span)
            }));
        }
        let mut raw = Vec::new();
        let mut homes = Vec::with_capacity(self.modules.len());
        let mut places: Vec<Vec<Option<u32>>> = Vec::with_capacity(self.modules.len());
        let mut definitions = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            let mut own = Vec::with_capacity(module.globals.len());
            let mut numbers = vec![None; module.globals.len()];
            for (place, global) in module.globals.iter().enumerate() {
                let here = (number as u32, place as u32);
                let found = match global.linkage {
                    Visibility::Internal => None,
                    _ => visible.get(&*global.name).map(|found| (found.module, found.place)),
                };
                own.push(found.unwrap_or(here));
                let is_defined = global.linkage != Visibility::External && found.is_none_or(|found| found == here);
                if is_defined && in_device_memory(global) {
                    if global.bytes().is_none() {
                        let message = format!("the size of {} is not known", global.name);
                        raw.push((number as u32, RawError::new(PtxErrorKind::UnknownSymbol, global.span, message)));
                    }
                    numbers[place] = Some(definitions.len() as u32);
                    definitions.push(here);
                }
            }
            homes.push(own);
            places.push(numbers);
        }
        if !raw.is_empty() {
            return Err(self.errors(raw));
        }
        (self.homes, self.places, self.definitions) = (homes, places, definitions);
        Ok(())
    }

    fn find_facts(&mut self) {
        let mut taken = vec![false; self.functions.len()];
        let mut largest_argument = 0;
        let mut facts = Vec::with_capacity(self.functions.len());
        let mut initial_names: BTreeMap<(u32, u32), (Vec<u32>, Vec<GlobalId>)> = BTreeMap::new();
        for (number, module) in self.modules.iter().enumerate() {
            // Notes that the address of a function is taken; gives its number where it is a kernel.
            let mut take = |function: FunctionId| {
                let Target::Function(target) = self.target(number as u32, function) else { return None };
                taken[target as usize] = true;
                self.function(target).1.is_entry.then_some(target)
            };
            for (place, global) in module.globals.iter().enumerate() {
                let (mut kernels, mut others) = (Vec::new(), Vec::new());
                for (_, value) in global.initializer.iter().flat_map(|initializer| &initializer.values) {
                    match value {
                        InitialValue::Address { symbol: SymbolReference::Function(function), .. } => {
                            kernels.extend(take(*function));
                        }
                        InitialValue::Address { symbol: SymbolReference::Global(other), .. } => others.push(*other),
                        _ => {}
                    }
                }
                if !kernels.is_empty() || !others.is_empty() {
                    initial_names.insert((number as u32, place as u32), (kernels, others));
                }
            }
            for function in &module.functions {
                let mut found = Facts::default();
                let mut lists: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                let mut prototypes: BTreeMap<u32, &Prototype> = BTreeMap::new();
                let statements = function.body.as_ref().map(|body| &body.statements[..]).unwrap_or_default();
                for statement in statements {
                    match statement {
                        Statement::CallTargets { table, targets, .. } => {
                            for target in targets {
                                take(*target);
                            }
                            let numbers =
                                targets.iter().filter_map(|target| match self.target(number as u32, *target) {
                                    Target::Function(target) => Some(target),
                                    _ => None,
                                });
                            lists.insert(table.0, numbers.collect());
                        }
                        Statement::CallPrototype { label, prototype } => {
                            prototypes.insert(label.0, prototype);
                        }
                        Statement::Variable(variable) => {
                            let variable = &function.variables[variable.index()];
                            if variable.space == StateSpace::Parameter {
                                let bytes = u32::try_from(variable.bytes().unwrap_or(0)).unwrap_or(u32::MAX);
                                largest_argument = largest_argument.max(bytes);
                            }
                        }
                        _ => {}
                    }
                }
                for statement in statements {
                    let Statement::Instruction(instruction) = statement else { continue };
                    let mut note = |symbol| match symbol {
                        SymbolReference::Global(global) => found.globals.push(global),
                        SymbolReference::Function(function) => found.kernels.extend(take(function)),
                        _ => {}
                    };
                    instruction.operands.iter().for_each(|operand| each_symbol(operand, &mut note));
                    let Some(call) = &instruction.call else { continue };
                    call.arguments.iter().for_each(|operand| each_symbol(operand, &mut note));
                    match call.target.kind {
                        OperandKind::Symbol { symbol: SymbolReference::Function(function), .. } => {
                            found.callees.push(function);
                        }
                        _ => {
                            let label = call.prototype.map(|label| label.0);
                            let prototype = label.and_then(|label| prototypes.get(&label));
                            found.indirect.push(IndirectCall {
                                listed: label.and_then(|label| lists.get(&label).cloned()),
                                shape: prototype.map(|shape| shape_of(&shape.returns, &shape.parameters)),
                            });
                        }
                    }
                }
                found.callees.sort_unstable();
                found.callees.dedup();
                found.globals.sort_unstable();
                found.globals.dedup();
                found.kernels.sort_unstable();
                found.kernels.dedup();
                facts.push(found);
            }
        }
        self.facts = facts;
        self.initial_names = initial_names;
        self.largest_argument = largest_argument;
        self.address_taken = (0..taken.len() as u32).filter(|number| taken[*number as usize]).collect();
    }

    /// The meaning of a module's function.
    pub fn target(&self, module: u32, function: FunctionId) -> Target {
        let number = self.first_function[module as usize] + function.0;
        self.targets.get(number as usize).copied().unwrap_or(Target::Undefined)
    }

    /// The module of a function and its declaration.
    pub fn function(&self, number: u32) -> (u32, &crate::ptx::ast::Function) {
        let (module, place) = self.functions[number as usize];
        (module, &self.modules[module as usize].functions[place as usize])
    }

    /// The address that stands for a function, where it has a body.
    pub fn function_address(&self, module: u32, function: FunctionId) -> Option<u64> {
        match self.target(module, function) {
            Target::Function(number) => Some(address_of(number)),
            _ => None,
        }
    }

    /// Where a module's variable is defined.
    pub fn home(&self, module: u32, global: GlobalId) -> Option<(u32, u32)> {
        self.homes[module as usize].get(global.index()).copied()
    }

    /// The number of a module's variable in device memory among the definitions.
    pub fn device_variable(&self, module: u32, global: GlobalId) -> Option<usize> {
        let (module, place) = self.home(module, global)?;
        self.places[module as usize][place as usize].map(|number| number as usize)
    }

    /// The texts.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The definitions in device memory, by number, with their modules.
    pub fn device_variables(&self) -> impl Iterator<Item = (u32, &Variable)> {
        self.definitions.iter().map(|&(module, place)| (module, self.variable(module, place)))
    }

    /// A module's variable.
    pub fn variable(&self, module: u32, place: u32) -> &Variable {
        &self.modules[module as usize].globals[place as usize]
    }

    /// One definition in device memory.
    pub fn device_variable_at(&self, number: usize) -> Option<(u32, &Variable)> {
        self.definitions.get(number).map(|&(module, place)| (module, self.variable(module, place)))
    }

    /// Variables of its module that a function names.
    pub fn named_globals(&self, function: u32) -> &[GlobalId] {
        &self.facts[function as usize].globals
    }

    /// Numbers of the kernels that can be launched, in the order of the texts.
    pub fn kernels(&self) -> impl Iterator<Item = u32> {
        (0..self.functions.len() as u32).filter(|&number| {
            let (_, function) = self.function(number);
            function.is_entry && function.body.is_some() && self.targets[number as usize] == Target::Function(number)
        })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<u32> {
        let first = self.kernel_names.partition_point(|number| &*self.function(*number).1.name < name);
        self.kernel_names.get(first).copied().filter(|number| &*self.function(*number).1.name == name)
    }

    /// The functions that a call through a register may reach: those that are listed, else those of its shape whose address is
    /// taken somewhere. `label` names the prototype or list.
    pub fn candidates(&self, listed: Option<&[u32]>, shape: Option<(&[Parameter], &[Parameter])>) -> Vec<u32> {
        self.candidates_of(listed, shape.map(|(returns, parameters)| shape_of(returns, parameters)).as_ref())
    }

    fn candidates_of(&self, listed: Option<&[u32]>, shape: Option<&Shape>) -> Vec<u32> {
        if let Some(listed) = listed {
            return listed.to_vec();
        }
        let fits = |number: &u32| {
            let (_, function) = self.function(*number);
            !function.is_entry && shape.is_none_or(|shape| *shape == shape_of(&function.returns, &function.parameters))
        };
        self.address_taken.iter().copied().filter(fits).collect()
    }

    /// Whether a function of the device runtime that launches kernels is named anywhere.
    pub fn launches(&self) -> bool {
        self.targets.iter().any(|target| matches!(target, Target::System(call) if call.launches()))
    }

    /// The kernels that a kernel can launch, by number, ascending: those whose address is taken in its functions, or in the initial
    /// value of a variable that these name. None where it launches nothing.
    pub fn launched_by(&self, kernel: u32) -> Vec<u32> {
        let reachable = self.reachable(kernel);
        let launches = |function: u32| {
            let module = self.function(function).0;
            let callees = self.facts[function as usize].callees.iter();
            callees
                .map(|callee| self.target(module, *callee))
                .any(|target| matches!(target, Target::System(call) if call.launches()))
        };
        if !reachable.iter().any(|(function, _)| launches(*function)) {
            return Vec::new();
        }
        let mut kernels = BTreeSet::new();
        let mut variables = Vec::new();
        for (function, _) in &reachable {
            let module = self.function(*function).0;
            let facts = &self.facts[*function as usize];
            kernels.extend(&facts.kernels);
            variables.extend(facts.globals.iter().filter_map(|global| self.home(module, *global)));
        }
        let mut seen = BTreeSet::new();
        while let Some(variable) = variables.pop() {
            let Some((named, others)) = self.initial_names.get(&variable).filter(|_| seen.insert(variable)) else {
                continue;
            };
            kernels.extend(named);
            variables.extend(others.iter().filter_map(|other| self.home(variable.0, *other)));
        }
        kernels.into_iter().collect()
    }

    /// A kernel and the functions that it can reach, each with those that it calls: places in the list.
    pub fn reachable(&self, kernel: u32) -> Vec<(u32, Vec<usize>)> {
        let mut order = vec![(kernel, Vec::new())];
        let facts = &self.facts[kernel as usize];
        if facts.callees.is_empty() && facts.indirect.is_empty() {
            return order;
        }
        let mut place_of: BTreeMap<u32, usize> = BTreeMap::from([(kernel, 0)]);
        let mut next = 0;
        while next < order.len() {
            let number = order[next].0;
            let facts = &self.facts[number as usize];
            let (module, _) = self.function(number);
            let mut callees: Vec<u32> = Vec::new();
            for callee in &facts.callees {
                if let Target::Function(callee) = self.target(module, *callee) {
                    callees.push(callee);
                }
            }
            for call in &facts.indirect {
                callees.extend(self.candidates_of(call.listed.as_deref(), call.shape.as_ref()));
            }
            callees.sort_unstable();
            callees.dedup();
            let mut places = Vec::with_capacity(callees.len());
            for callee in callees {
                let place = *place_of.entry(callee).or_insert_with(|| {
                    order.push((callee, Vec::new()));
                    order.len() - 1
                });
                places.push(place);
            }
            order[next].1 = places;
            next += 1;
        }
        order
    }
}

/// The address that stands for a function.
pub(crate) fn address_of(function: u32) -> u64 {
    FUNCTION_ADDRESSES + FUNCTION_STRIDE * (u64::from(function) + 1)
}

fn each_symbol(operand: &Operand, note: &mut impl FnMut(SymbolReference)) {
    match &operand.kind {
        OperandKind::Symbol { symbol, .. } => note(*symbol),
        OperandKind::Address(address) => {
            if let AddressBase::Symbol(symbol) = address.base {
                note(symbol);
            }
        }
        OperandKind::Vector(parts) | OperandKind::AddressList(parts) => {
            parts.iter().for_each(|part| each_symbol(part, note));
        }
        _ => {}
    }
}
