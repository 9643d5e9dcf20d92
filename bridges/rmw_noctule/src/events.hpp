#ifndef EVENTS_HPP_
#define EVENTS_HPP_

#include "noctule_rmw.h"
#include "rmw/event.h"

namespace rmw_noctule
{

// The waitable that is raised when an initialized event has something new.
nrmw_waitable * waitable_of(const rmw_event_t & event);

}  // namespace rmw_noctule

#endif  // EVENTS_HPP_
