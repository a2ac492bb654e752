/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simnet.h on SimGrid's S4U interface.
 *
 * A transfer is a communication between a pair of actors; an idle pair waits for the
 * next transfer. One-sided communications would be slow: at the end of each, SimGrid
 * 3.32 searches a list of all. Timers are a heap in this file, and one actor that
 * sleeps until the next timer is due.
 */
#include "perf/sim/simnet.h"

#include <queue>
#include <simgrid/s4u.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace sg = simgrid::s4u;

namespace {

struct Call {
    void (*fn)(void *);
    void *arg;
};

struct Timer {
    double at;
    uint64_t number; /* timers of the same time fire in the order of creation */
    Call call;
    bool operator>(const Timer &other) const
    {
        return at > other.at || (at == other.at && number > other.number);
    }
};

struct Pair {
    sg::SemaphorePtr sender, receiver;
    sg::Mailbox *box;
    int from, to;
    uint64_t bytes;
    Call call;
};

std::vector<sg::Host *> hosts;
std::unordered_map<const sg::Link *, int> link_numbers;
std::vector<Pair *> idle;
size_t pairs, in_flight;
std::priority_queue<Timer, std::vector<Timer>, std::greater<Timer>> timers;
uint64_t timers_made;
sg::SemaphorePtr alarm_clock;
bool asleep, stopped;
double wakes_at;

/* SimGrid does not distinguish times closer than this. */
constexpr double MOMENT = 1e-9;
constexpr double LONG = 1e9;

void wake()
{
    if (asleep) {
        asleep = false;
        alarm_clock->release();
    }
}

void send(Pair *p)
{
    for (;;) {
        sg::this_actor::set_host(hosts[p->from]);
        p->box->put(p, p->bytes);
        p->sender->acquire();
    }
}

void receive(Pair *p)
{
    for (;;) {
        sg::this_actor::set_host(hosts[p->to]);
        p->box->get<Pair>();
        const Call call = p->call;
        idle.push_back(p);
        in_flight--;
        if (!stopped)
            call.fn(call.arg);
        if (in_flight == 0)
            wake();
        p->receiver->acquire();
    }
}

void keep_time()
{
    while (!stopped) {
        while (!timers.empty() && timers.top().at <= simnet_now() + MOMENT && !stopped) {
            const Call call = timers.top().call;
            timers.pop();
            call.fn(call.arg);
        }
        if (stopped || (timers.empty() && in_flight == 0))
            break;
        wakes_at = timers.empty() ? simnet_now() + LONG : timers.top().at;
        asleep = true;
        alarm_clock->acquire_timeout(wakes_at - simnet_now());
        asleep = false;
    }
    stopped = true;
    sg::Actor::kill_all();
}

sg::Host *add_host(sg::NetZone *zone)
{
    sg::Host *host = zone->create_host("host" + std::to_string(hosts.size()), 1e9);
    hosts.push_back(host);
    return host;
}

void build_star(const struct simnet_shape *shape)
{
    sg::NetZone *zone = sg::create_star_zone("net");
    for (int i = 0; i < shape->hosts; i++) {
        sg::Host *host = add_host(zone);
        sg::SplitDuplexLink *link =
            zone->create_split_duplex_link("link" + std::to_string(i),
                                           i == shape->slow_host ? shape->slow_rate
                                                                 : shape->rate);
        zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                        {{link, sg::LinkInRoute::Direction::UP}}, true);
    }
    zone->seal();
}

sg::ClusterCallbacks with_hosts()
{
    return sg::ClusterCallbacks(
        [](sg::NetZone *zone, const std::vector<unsigned long> &, unsigned long)
            -> std::pair<simgrid::kernel::routing::NetPoint *,
                         simgrid::kernel::routing::NetPoint *> {
            return {add_host(zone)->get_netpoint(), nullptr};
        });
}

unsigned number(int n)
{
    return static_cast<unsigned>(n);
}

void build_fat_tree(const struct simnet_shape *shape)
{
    const int leaves = (shape->hosts + shape->down - 1) / shape->down;
    const sg::FatTreeParams params(2, {number(shape->down), number(leaves)},
                                   {1, number(shape->up)}, {1, 1});
    sg::create_fatTree_zone("net", nullptr, params, with_hosts(), shape->rate, 0,
                            sg::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
}

void build_dragonfly(const struct simnet_shape *shape)
{
    const sg::DragonflyParams params({number(shape->groups), 1},
                                     {number(shape->chassis), 1},
                                     {number(shape->routers), 1}, number(shape->nodes));
    sg::create_dragonfly_zone("net", nullptr, params, with_hosts(), shape->rate, 0,
                              sg::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
}

} // namespace

void simnet_open(const struct simnet_shape *shape)
{
    /* Links are shared by max-min fairness alone: no factors fitted to TCP, no
     * bandwidth for acknowledgements, no latency. */
    static char name[] = "trib-sim", quiet[] = "--log=root.thres:critical";
    static char *argv[] = {name, quiet, nullptr};
    int argc = 2;
    static sg::Engine engine(&argc, argv);

    sg::Engine::set_config("contexts/stack-size:64");
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/crosstraffic:0");
    sg::Engine::set_config("network/TCP-gamma:0");
    sg::Engine::set_config("network/bandwidth-factor:1");
    sg::Engine::set_config("network/weight-S:0");
    if (shape->kind == SIMNET_STAR)
        build_star(shape);
    else if (shape->kind == SIMNET_FAT_TREE)
        build_fat_tree(shape);
    else
        build_dragonfly(shape);
}

int simnet_links(void)
{
    return static_cast<int>(link_numbers.size());
}

void simnet_route(int from, int to, struct simnet_route *out)
{
    std::vector<sg::Link *> links;
    double latency;

    out->n = 0;
    if (from == to)
        return;
    hosts[from]->route_to(hosts[to], links, &latency);
    for (const sg::Link *link : links)
        if (out->n < SIMNET_ROUTE_MOST)
            out->link[out->n++] =
                link_numbers.emplace(link, link_numbers.size()).first->second;
}

double simnet_now(void)
{
    return sg::Engine::get_clock();
}

void simnet_send(int from, int to, double bytes, void (*fn)(void *), void *arg)
{
    Pair *p = idle.empty() ? nullptr : idle.back();
    const bool is_new = p == nullptr;

    if (is_new) {
        p = new Pair();
        p->sender = sg::Semaphore::create(0);
        p->receiver = sg::Semaphore::create(0);
        p->box = sg::Mailbox::by_name(std::to_string(pairs++));
    } else {
        idle.pop_back();
    }
    p->from = from;
    p->to = to;
    p->bytes = static_cast<uint64_t>(bytes);
    p->call = {fn, arg};
    in_flight++;
    if (is_new) {
        sg::Actor::create("sender", hosts[from], [p] { send(p); });
        sg::Actor::create("receiver", hosts[to], [p] { receive(p); });
    } else {
        p->sender->release();
        p->receiver->release();
    }
}

void simnet_after(double seconds, void (*fn)(void *), void *arg)
{
    const double at = simnet_now() + seconds;

    timers.push({at, timers_made++, {fn, arg}});
    if (at < wakes_at)
        wake();
}

void simnet_stop(void)
{
    stopped = true;
    wake();
}

void simnet_run(void (*fn)(void *), void *arg)
{
    alarm_clock = sg::Semaphore::create(0);
    sg::Actor::create("clock", hosts[0], [fn, arg] {
        fn(arg);
        keep_time();
    });
    sg::Engine::get_instance()->run();
}
