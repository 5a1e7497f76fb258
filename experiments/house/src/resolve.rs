//! Which module defines what a path names. Re-exports are followed: a path through a parent leads to the child that defines the item.

use crate::tokens::Import;
use crate::tree::Tree;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A module itself.
    Module(usize),
    /// Something that this module defines.
    Item(usize),
}

/// Chains of re-exports are shorter; imports that name themselves would have no end.
const DEEPEST: usize = 16;

impl Tree {
    /// What `path` leads to from module `from`; none if that is another crate's.
    pub fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, None, DEEPEST)
    }

    /// As `resolve`; an import does not lead through itself.
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

    /// One name within a module. A last name is an item before it is a module. A first name that the module does not know is another
    /// crate's; later ones are items of the module (variants, macros' products).
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

    /// A name that comes in by `use path::*`.
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
