// What is known of a lane at one moment. It grows by what the ledger and the
// broker said, and by nothing else.

const keep = 3000; // finished messages that stay to be looked at

export function newLane(info) {
  return {
    info, state: info.state ?? "", error: info.error ?? "", guarantee: info.guarantee ?? null, available: info.strikes ?? [],
    counts: {}, structure: null, processes: [], strikes: [], struck: [], ended: null,
    messages: new Map(), // id: message
    waiting: new Map(), gate: new Map(), unknown: new Map(), held: new Map(), lost: new Map(), dead: new Map(), // id: message, in order
    finished: [], repeated: [], rates: {}, at: 0,
  };
}

const sets = ["waiting", "gate", "unknown", "held", "lost", "dead"];

function put(lane, m, set) {
  for (const s of sets) if (s !== set) lane[s].delete(m.id);
  m.where = set;
  if (set) lane[set].set(m.id, m);
}

function message(lane, id) {
  let m = lane.messages.get(id);
  if (!m) {
    m = { id, where: "", process: 0, deliveries: 0, effects: 0, acked: false, accepted: false, unknown: false, to: {}, place: "" };
    lane.messages.set(id, m);
  }
  return m;
}

// broadcasts is whether each consumer is meant to get every message: then
// nothing is repeated that two of them have had.
export const broadcasts = (lane) => lane.info.kind === "pubsub" || lane.info.backend === "redis-xread";
export const repeats = (lane, m) => broadcasts(lane) ? Object.values(m.to).some((n) => n > 1) : m.deliveries > 1;

// record applies one record of the ledger, and returns where its message went:
// what is drawn moves there.
export function record(lane, [at, event, process, id, attempt]) {
  lane.at = Math.max(lane.at, at);
  count(lane, event, at, 1);
  const m = message(lane, id);
  m.last = at;
  switch (event) {
    case "intent":
      if (m.where === "") put(lane, m, "gate");
      return { id, to: "gate", process };
    case "accepted":
      m.accepted = true;
      if (m.where === "gate" || m.where === "unknown") put(lane, m, "waiting");
      return m.where === "waiting" ? { id, to: "queue", process } : null;
    case "unknown":
      m.unknown = true;
      if (m.where === "gate") put(lane, m, "unknown");
      return m.where === "unknown" ? { id, to: "unknown", process } : null;
    case "rejected":
      m.rejected = true;
      finish(lane, m);
      return { id, to: "rejected", process };
    case "delivered":
      m.deliveries++;
      m.attempt = attempt;
      m.to[process] = (m.to[process] ?? 0) + 1;
      m.process = process;
      m.doubted = false;
      m.holders = { ...m.holders, [process]: true };
      if (repeats(lane, m) && !m.twice) { m.twice = true; noteRepeated(lane, m); }
      if (m.where !== "dead") put(lane, m, "held");
      return { id, to: "held", process, via: "queue", twice: !!m.twice };
    case "effect":
      m.effects++;
      m.effectBy = { ...m.effectBy, [process]: true };
      if (m.effects > 1 && !broadcasts(lane)) { m.double = true; noteRepeated(lane, m); }
      settle(lane, m, process);
      return { id, to: "database", process, twice: !!m.double };
    case "effectUnknown":
      m.doubt = true;
      return { id, to: "doubt", process };
    case "acked":
      m.acked = true;
      settle(lane, m, process);
      return null;
    case "nacked":
      put(lane, m, "waiting");
      return { id, to: "queue", process };
    case "dead":
      put(lane, m, "dead");
      return { id, to: "dead", process };
  }
  return null;
}

// settle lets a message go from where it is held, once its effect is there.
function settle(lane, m, process) {
  if (m.effects === 0) return;
  if (m.holders) m.holders[process] = false;
  if (m.where === "lost" || m.where === "dead") put(lane, m, "");
  if (!m.holders || !Object.values(m.holders).some(Boolean)) finish(lane, m);
}

function noteRepeated(lane, m) {
  if (!lane.repeated.includes(m.id)) lane.repeated.push(m.id);
  if (lane.repeated.length > keep) lane.repeated.shift();
}

function finish(lane, m) {
  put(lane, m, "");
  lane.finished.push(m.id);
  if (lane.finished.length > 2 * keep) {
    for (const id of lane.finished.splice(0, keep)) {
      const old = lane.messages.get(id);
      if (old && old.where === "" && !old.twice && !old.double) lane.messages.delete(id);
    }
  }
}

// lose marks what the ledger calls lost, where it was lost.
export function lose(lane, id, place) {
  const m = message(lane, id);
  m.place = place;
  put(lane, m, "lost");
  return { id, to: "lost", process: m.process, place };
}

// find takes a loss back.
export function find(lane, id) {
  const m = message(lane, id);
  if (m.where === "lost") put(lane, m, m.effects ? "" : "waiting");
  m.place = "";
}

// close takes the ledger's last word: whom it neither lost nor found in the
// queue had an effect, though nobody may have lived to write it down.
export function close(lane, { stranded }) {
  const left = new Set(stranded ?? []);
  for (const set of ["gate", "waiting", "held"]) for (const m of [...lane[set].values()]) put(lane, m, left.has(m.id) ? "waiting" : "");
}

// blur forgets where each message is: too many went by to be told one by one.
// What was lost, is dead or unknown stays.
export function blur(lane) {
  for (const set of ["gate", "waiting", "held"]) {
    for (const m of lane[set].values()) {
      m.where = "";
      if (!m.twice && !m.double) lane.messages.delete(m.id);
    }
    lane[set].clear();
  }
}

export function count(lane, event, at, n) {
  const bins = lane.rates[event] ??= [];
  const bin = Math.floor(at / 200);
  const last = bins[bins.length - 1];
  if (last && last[0] === bin) last[1] += n;
  else bins.push([bin, n]);
  while (bins.length > 12) bins.shift();
}

// rate is how many a second there were in the last second before a moment.
export function rate(lane, event, at) {
  const now = Math.floor(at / 200);
  let n = 0;
  for (const [bin, k] of lane.rates[event] ?? []) if (bin >= now - 5 && bin < now) n += k;
  return n;
}

export const alive = (lane, process) => {
  const p = lane.processes.find((p) => p.n === process);
  return p ? p.alive : null;
};
const shown = 4; // consumers in a picture, where so many live
export const consumers = (lane) => lane.processes.filter((p) => p.role === "consumer" || p.role === "both");

// inPicture are the consumers that live, and of the dead the last ones.
export function inPicture(lane) {
  const all = consumers(lane), living = all.filter((p) => p.alive !== false).length;
  const room = Math.max(1, shown - living);
  const stay = new Set(all.filter((p) => p.alive === false).slice(-room));
  return all.filter((p) => p.alive !== false || stay.has(p));
}
// killed is whether a process died, and was not stopped in order at the end.
export const killed = (p) => p?.alive === false && p.killed !== false;
export const stopped = (p) => p?.alive === false && !killed(p);
export const theBroker = (lane) => lane.processes.find((p) => p.role === "broker") ?? null;
export const theDatabase = (lane) => lane.processes.find((p) => p.role === "database") ?? null;

// inDoubt is a message whose holder is dead: whether it comes again or is lost
// is not known until it does, or until the ledger has the last word.
export const inDoubt = (lane, m) => m.where === "held" && (m.doubted === true || alive(lane, m.process) === false);
export function doubt(lane, id) { message(lane, id).doubted = true; }
