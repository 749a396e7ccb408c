//! That a job never ran, and whether another try makes sense.

use super::ask::RequestRefusal;
use crate::runner::evidence::{Never, NeverCause};

/// It never ran, and another try makes sense.
pub(super) fn later(why: String) -> Never {
    Never { why, cause: NeverCause::Surroundings }
}

/// It never ran, and another try makes no sense.
pub(super) fn never(why: String) -> Never {
    Never { why, cause: NeverCause::Job }
}

/// It never ran: it was refused leave, and taken back.
pub(super) fn taken_back(why: String) -> Never {
    Never { why, cause: NeverCause::Gate }
}

pub(super) fn told(refused: RequestRefusal) -> Never {
    match refused {
        RequestRefusal::Never(why) | RequestRefusal::NotFound(why) => never(why),
        RequestRefusal::Now(why)
        | RequestRefusal::Changed(why)
        | RequestRefusal::Unauthorized(why)
        | RequestRefusal::Unreached(why)
        | RequestRefusal::Doubtful(why)
        | RequestRefusal::NotOurs(why) => later(why),
        RequestRefusal::NoLeave(why) => taken_back(why),
    }
}
