//! Fetches the definitions of topics' types from the nodes that publish them, in a thread of its own: a page does not wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use noctule::{Node, NodeId};
use noctule_codegen::described::Described;

use crate::types::Types;

/// A node that has not answered by then is asked again.
const TIMEOUT: Duration = Duration::from_millis(500);
/// So often in all.
const TRIES: usize = 3;
/// Types that wait for their turn; the others are requested when the view looks again.
const WAITING_MAX: usize = 64;
/// Types that are requested.
const ASKED_MAX: usize = 4_096;

/// A type of this name and hash, of which the node has an endpoint.
type Question = (NodeId, String, u64);

/// Asks until it is dropped.
pub(super) struct Definitions {
    asked: BTreeSet<(NodeId, u64)>,
    questions: Option<SyncSender<Question>>,
}

impl Definitions {
    pub(super) fn start(node: &Arc<Node>, types: &Arc<Types>) -> Definitions {
        let (questions, come) = sync_channel(WAITING_MAX);
        let (node, types) = (Arc::clone(node), Arc::clone(types));
        let work = move || ask_all(&node, &types, &come);
        // Without a thread there are the definitions that the view has itself.
        let started = std::thread::Builder::new().name("noctule-types".into()).spawn(work);
        Definitions { asked: BTreeSet::new(), questions: started.is_ok().then_some(questions) }
    }

    /// This type has a publisher; its node is asked for it once.
    pub(super) fn want(&mut self, owner: NodeId, type_name: &str, hash: u64) {
        let is_new = hash != 0 && self.asked.len() < ASKED_MAX && !self.asked.contains(&(owner, hash));
        if let Some(questions) = self.questions.as_ref().filter(|_| is_new)
            && questions.try_send((owner, type_name.to_owned(), hash)).is_ok()
        {
            self.asked.insert((owner, hash));
        }
    }
}

fn ask_all(node: &Node, types: &Types, questions: &Receiver<Question>) {
    for (owner, type_name, hash) in questions {
        if types.has(&type_name, hash) {
            continue;
        }
        let mut answers = (0..TRIES).map(|_| node.type_description(owner, hash, TIMEOUT));
        if let Some(Ok(description)) = answers.find(Result::is_ok)
            && let Ok(described) = Described::new(&description)
        {
            types.add_described(&type_name, hash, described);
        }
    }
}
