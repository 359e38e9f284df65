// What the page says, in each of its languages.

const words = {
  en: {
    skip: "Skip to the vouchers", brand: "Flash sale", language: "Language", login: "Log in", logout: "Log out",
    onSale: "On sale", serverTime: "Server time", nothing: "Nothing is on sale yet.", myOrders: "My orders",
    noOrders: "You have no orders yet.", name: "Name", nameHint: "Letters, digits, dot, underscore, hyphen or @",
    password: "Password", passwordHint: "At least 8 characters", close: "Close",
    enterTitle: "Log in", registerTitle: "Make an account", enterGo: "Log in", registerGo: "Make the account",
    toRegister: "Make an account", toEnter: "Log in instead", newHere: "New here?", haveOne: "You have an account?",
    anyName: "Any name will do.", toBuy: "Log in to buy {title}.", again: "Your login has ended. Log in again.",
    needName: "Type your name.", needPassword: "Type your password.", badName: "A name has 1 to 64 of these: letters, digits, dot, underscore, hyphen, @.",
    shortPassword: "A password has at least 8 characters.", wrongLogin: "The name or the password is wrong.", nameTaken: "This name is taken: choose another one, or log in.",
    riddleTitle: "One question first", riddleWhy: "It keeps simple scripts out.", riddleAnswer: "Your answer", riddleGo: "Go on",
    riddleText: "Ask me in words", riddlePicture: "Show me a picture", riddleAlt: "A picture of digits; choose “Ask me in words” if you cannot read it",
    riddleRead: "Type the digits in the picture.", riddleWrong: "That was not it. Here is another one.",
    sureTitle: "Cancel this order?", sureWhat: "{title}: the unit goes back on sale, and somebody else may get it.", sureYes: "Cancel the order", sureNo: "Keep it",
    buy: "Buy for {price}", buyTitle: "Buy {title} for {price}", buying: "One moment…", logInToBuy: "Log in to buy",
    left: "{left} of {stock} left", leftLabel: "Units left of {title}", off: "{percent}% off", perUser: "Up to {n} each",
    soldOut: "Sold out", startsIn: "Starts in {time}", opensSoon: "Opens any moment", signalAfter: "Opens by signal, not before {time}",
    endsIn: "Ends in {time}", ended: "The sale is over", days: "{n} d {rest}", open: "On sale now", soonShort: "Soon", liveShort: "Live", overShort: "Over",
    notOpen: "Not open yet", yours: "You have it", wait: "Again in {n} s",
    queued: "You are in. Your order is being decided…", ahead: "You are in. {n} before you.", next: "You are in, and next.",
    confirmed: "Yours! Order {id} is confirmed.", payBefore: "Pay within {time}.", failed: "It did not work out: {why}.",
    saySoldOut: "Sold out: the last unit has just gone.", sayBought: "You have bought this already.", sayNotStarted: "The sale has not started yet.",
    sayEnded: "The sale is over.", sayBusy: "Very busy just now. Nothing was bought; try again in {n} s.", sayAgain: "You can try again now.",
    sayLimited: "That was too fast. Try again in {n} s.", sayOffline: "No answer from the shop. Try again: you will not buy twice.",
    sayGone: "This order did not come about. Nothing was bought.", sayClosed: "You closed the question, so nothing was bought.", sayOpened: "The sale of {title} is open!", sayNowSoldOut: "{title} is sold out.",
    offline: "You are offline. What you see may be old; it goes on by itself.", away: "The shop does not answer at the moment. It goes on by itself.",
    status_queued: "In line", status_confirmed: "To be paid", status_failed: "Failed", status_paid: "Paid", status_cancelled: "Cancelled", status_refunded: "Refunded",
    pay: "Pay {price}", payTitle: "Pay {price} for {title}, order {id}", cancel: "Cancel", cancelTitle: "Cancel the order of {title}", payIn: "{time} left to pay", noDeadline: "No deadline to pay",
    payStandIn: "A stand-in plays the payment provider: no money moves.", payElsewhere: "Pay with the shop's payment provider, and name the order.",
    order: "Order {id}", paid: "Paid. Thank you!", cancelled: "Cancelled. The unit is back on sale.",
    why_sold_out: "all units were sold", why_already_bought: "you have one already", why_unpaid: "not paid in time", why_by_buyer: "by your wish",
    why_by_operator: "refunded by the shop", why_too_late: "the time to pay had ended; the money goes back", why_already_paid: "it was paid already; this money goes back", why_ended: "the sale had ended",
    why_undeliverable: "the shop could not process it", why_discarded: "the shop could not process it", why_not_found: "the shop could not process it", why_id_taken: "the shop could not process it",
    why_lost: "the shop lost it; nothing is owed, and you may buy again", why_not_sold: "the order had failed; the money goes back",
    unknownVoucher: "A voucher", said: "The shop says: {message}",
  },
  zh: {
    skip: "跳到优惠券", brand: "限时秒杀", language: "语言", login: "登录", logout: "退出登录",
    onSale: "正在秒杀", serverTime: "服务器时间", nothing: "还没有正在出售的优惠券。", myOrders: "我的订单",
    noOrders: "你还没有订单。", name: "用户名", nameHint: "字母、数字、点、下划线、连字符或 @",
    password: "密码", passwordHint: "至少 8 个字符", close: "关闭",
    enterTitle: "登录", registerTitle: "注册账号", enterGo: "登录", registerGo: "注册",
    toRegister: "注册账号", toEnter: "去登录", newHere: "第一次来？", haveOne: "已经有账号？",
    anyName: "任何用户名都可以。", toBuy: "登录后购买「{title}」。", again: "登录已失效，请重新登录。",
    needName: "请输入用户名。", needPassword: "请输入密码。", badName: "用户名为 1 到 64 个字母、数字、点、下划线、连字符或 @。",
    shortPassword: "密码至少 8 个字符。", wrongLogin: "用户名或密码不对。", nameTaken: "用户名已被占用：请换一个，或者直接登录。",
    riddleTitle: "先回答一个问题", riddleWhy: "用来挡住简单的脚本。", riddleAnswer: "你的答案", riddleGo: "继续",
    riddleText: "改用文字题", riddlePicture: "改用图片题", riddleAlt: "一张数字图片；看不清请选择「改用文字题」",
    riddleRead: "请输入图片中的数字。", riddleWrong: "答案不对，换一题再试。",
    sureTitle: "取消这个订单？", sureWhat: "「{title}」：库存会退回，可能被别人抢走。", sureYes: "取消订单", sureNo: "保留订单",
    buy: "{price} 立即抢购", buyTitle: "以 {price} 抢购「{title}」", buying: "请稍候…", logInToBuy: "登录后抢购",
    left: "剩余 {left} / {stock} 件", leftLabel: "「{title}」剩余数量", off: "立减 {percent}%", perUser: "每人限购 {n} 件",
    soldOut: "已售罄", startsIn: "{time} 后开始", opensSoon: "随时可能开抢", signalAfter: "等待开抢信号，最早 {time}",
    endsIn: "{time} 后结束", ended: "秒杀已结束", days: "{n} 天 {rest}", open: "正在抢购", soonShort: "即将开始", liveShort: "进行中", overShort: "已结束",
    notOpen: "尚未开始", yours: "已经抢到", wait: "{n} 秒后可重试",
    queued: "已抢到名额，订单处理中…", ahead: "已抢到名额，前面还有 {n} 单。", next: "已抢到名额，马上轮到你。",
    confirmed: "抢到了！订单 {id} 已确认。", payBefore: "请在 {time} 内付款。", failed: "没有成功：{why}。",
    saySoldOut: "已售罄：最后一件刚刚被抢走。", sayBought: "你已经买过这张优惠券了。", sayNotStarted: "秒杀还没有开始。",
    sayEnded: "秒杀已经结束。", sayBusy: "现在人太多，没有下单成功，请 {n} 秒后再试。", sayAgain: "现在可以再试一次了。",
    sayLimited: "点得太快了，请 {n} 秒后再试。", sayOffline: "没有收到商店的回应。请再试一次，不会重复购买。",
    sayGone: "这个订单没有生成，什么也没有买。", sayClosed: "你关闭了问题，没有下单。", sayOpened: "「{title}」开抢了！", sayNowSoldOut: "「{title}」已售罄。",
    offline: "你处于离线状态，看到的内容可能是旧的；恢复后会自动继续。", away: "商店暂时没有回应，恢复后会自动继续。",
    status_queued: "排队中", status_confirmed: "待付款", status_failed: "失败", status_paid: "已付款", status_cancelled: "已取消", status_refunded: "已退款",
    pay: "付款 {price}", payTitle: "为「{title}」的订单 {id} 付款 {price}", cancel: "取消", cancelTitle: "取消「{title}」的订单", payIn: "剩余付款时间 {time}", noDeadline: "没有付款期限",
    payStandIn: "这里由模拟支付代替真实支付，不会产生扣款。", payElsewhere: "请通过商店的支付渠道付款，并注明订单号。",
    order: "订单 {id}", paid: "付款成功，谢谢！", cancelled: "已取消，库存已退回。",
    why_sold_out: "已经售罄", why_already_bought: "你已经有一件了", why_unpaid: "没有按时付款", why_by_buyer: "按你的要求",
    why_by_operator: "商店已退款", why_too_late: "付款时间已过，款项会退回", why_already_paid: "已经付过款，这笔款项会退回", why_ended: "秒杀已经结束",
    why_undeliverable: "商店没能处理这个订单", why_discarded: "商店没能处理这个订单", why_not_found: "商店没能处理这个订单", why_id_taken: "商店没能处理这个订单",
    why_lost: "商店丢失了这个订单，你不用付款，可以重新购买", why_not_sold: "订单没有成功，款项会退回",
    unknownVoucher: "优惠券", said: "商店回复：{message}",
  },
};

const remembered = localStorage.getItem("tongue");
let tongue = words[remembered] ? remembered : (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";

export const current = () => tongue;

export function choose(t) {
  tongue = t;
  localStorage.setItem("tongue", t);
}

export const knows = key => key in words[tongue];

// text says something; what stands in braces is taken from values.
export function text(key, values = {}) {
  return (words[tongue][key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

const locale = () => tongue === "zh" ? "zh-CN" : "en-GB";

export const money = cents => (cents / 100).toLocaleString(locale(), { style: "currency", currency: "CNY", currencyDisplay: "narrowSymbol" });

export const count = n => n.toLocaleString(locale());

export const moment = t => new Date(t).toLocaleString(locale(), { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const clock = t => new Date(t).toLocaleTimeString(locale(), { hour12: false });

// span writes milliseconds as hours, minutes and seconds.
export function span(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), two = n => String(n).padStart(2, "0");
  const rest = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return s >= 86400 ? text("days", { n: Math.floor(s / 86400), rest }) : rest;
}

// missing is for tests: what one language says and another does not.
export const missing = () => Object.keys(words.en).filter(k => !(k in words.zh)).concat(Object.keys(words.zh).filter(k => !(k in words.en)));
