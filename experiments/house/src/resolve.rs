//! Finds the module that defines a path. Follows re-exports: a path through a parent leads to the child that defines
//! the item.

use crate::tokens::Import;
use crate::tree::Tree;

/// What a path refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A module itself.
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

/// Longest chain of re-exports; imports of themselves would never end.
const DEEPEST: usize = 16;

impl Tree {
    /// The target of `path` in module `from`; `None` if it is in another crate.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, None, DEEPEST)
    }

    /// As `resolve`, without following the import `except`.
    fn follow(&self, from: usize, path: &[String], except: Option<&Import>, depth: usize) -> Option<Target> {
        let depth = depth.checked_sub(1)?;
        let mut at = from;
        let mut first = true;
        for (i, name) in path.iter().enumerate() {
            let last = i + 1 == path.len();
            at = match name.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules[at].parent?,
                name => match self.step(at, name, last, first, except, depth)? {
                    Target::Module(module) => module,
                    item => return Some(item),
                },
            };
            first = false;
        }
        Some(Target::Module(at))
    }

    /// Resolves one name within a module. A last name is an item before it is a module. A first name that the module
    /// does not define is another crate; a later one is an item of the module (a variant, or a macro's product).
    fn step(
        &self,
        at: usize,
        name: &str,
        last: bool,
        first: bool,
        except: Option<&Import>,
        depth: usize,
    ) -> Option<Target> {
        let module = &self.modules[at];
        let own = module.found.items.contains(name).then_some(Target::Item(at));
        let child = module.children.get(name).copied().map(Target::Module);
        let known = if last { own.or(child) } else { child.or(own) };
        if last && own.is_some() {
            return own;
        }
        let mut imported = module
            .found
            .imports
            .iter()
            .filter(|import| import.name == name && !except.is_some_and(|e| std::ptr::eq(e, *import)));
        let imported = imported.find_map(|import| self.follow(at, &import.path, Some(import), depth));
        match (known, imported) {
            (Some(Target::Module(_)), Some(Target::Item(item))) if last => Some(Target::Item(item)),
            (Some(known), _) => Some(known),
            (None, Some(imported)) => Some(imported),
            (None, None) => self.through_globs(at, name, depth).or((!first).then_some(Target::Item(at))),
        }
    }

    /// A name imported by `use path::*`.
    fn through_globs(&self, at: usize, name: &str, depth: usize) -> Option<Target> {
        let mut globs = self.modules[at].found.imports.iter().filter(|import| import.name == "*");
        globs.find_map(|glob| match self.follow(at, &glob.path, Some(glob), depth)? {
            Target::Module(module) if self.modules[module].found.items.contains(name) => {
                Some(Target::Item(module))
            }
            Target::Module(module) if module != at => {
                let mut imports =
                    self.modules[module].found.imports.iter().filter(|import| import.name == name);
                imports.find_map(|import| self.follow(module, &import.path, Some(import), depth))
            }
            _ => None,
        })
    }
}
