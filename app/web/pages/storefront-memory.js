// The orders that this browser remembers of each buyer: a shop lists only those
// that have a unit.

const most = 30;
const key = user => "orders of " + user;

function read(user) {
  try {
    const list = JSON.parse(localStorage.getItem(key(user)) || "[]");
    return Array.isArray(list) ? list.filter(o => o && typeof o.id === "string") : [];
  } catch { return []; }
}

const write = (user, list) => localStorage.setItem(key(user), JSON.stringify(list.slice(0, most)));

// remembered is all of a buyer's orders, or the one with an id.
export const remembered = (user, id) => id ? read(user).find(o => o.id === id) : read(user);

// remember adds to what is known of an order.
export function remember(user, order) {
  const list = read(user);
  write(user, [{ ...list.find(o => o.id === order.id), ...order }, ...list.filter(o => o.id !== order.id)]);
}

export const forgetOrder = (user, id) => write(user, read(user).filter(o => o.id !== id));
