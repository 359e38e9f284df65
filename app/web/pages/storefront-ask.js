// What the page asks: who somebody is, a riddle, whether they are sure.
import { call, enter, Refusal, session } from "./storefront-net.js";
import { text } from "./storefront-text.js";

const $ = id => document.getElementById(id);

for (const b of document.querySelectorAll("[data-close]")) b.addEventListener("click", () => b.closest("dialog").close(""));

// ended resolves once a dialog is closed, with what it was closed with.
const ended = dialog => new Promise(done => dialog.addEventListener("close", () => done(dialog.returnValue), { once: true }));

function ask(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return ended(dialog);
}

let registering = false;

function showDoor(why) {
  const passwords = session.door.login === "password";
  if (!passwords) registering = false;
  $("door-title").textContent = text(registering ? "registerTitle" : "enterTitle");
  $("door-go").textContent = text(registering ? "registerGo" : "enterGo");
  $("door-why").textContent = [why, passwords ? "" : text("anyName")].filter(Boolean).join(" ");
  $("door-other-text").textContent = text(registering ? "haveOne" : "newHere");
  $("door-other").textContent = text(registering ? "toEnter" : "toRegister");
  $("door-other").parentElement.hidden = !passwords;
  $("password-part").hidden = !passwords;
  $("password-hint").hidden = !registering;
  $("password").autocomplete = registering ? "new-password" : "current-password";
  for (const id of ["user", "password"]) $(id).removeAttribute("aria-invalid");
  $("door-answer").textContent = "";
}

$("door-other").addEventListener("click", () => { registering = !registering; showDoor(""); $("user").focus(); });

function wrong(id, key, values) {
  $(id).setAttribute("aria-invalid", "true");
  $("door-answer").textContent = text(key, values);
  $(id).focus();
}

$("door-form").addEventListener("submit", async e => {
  e.preventDefault();
  const user = $("user").value.trim(), password = $("password").value, passwords = session.door.login === "password";
  for (const id of ["user", "password"]) $(id).removeAttribute("aria-invalid");
  if (!user) return wrong("user", "needName");
  if (!/^[A-Za-z0-9._@-]{1,64}$/.test(user)) return wrong("user", "badName");
  if (passwords && !password) return wrong("password", "needPassword");
  if (passwords && registering && password.length < 8) return wrong("password", "shortPassword");
  $("door-answer").textContent = "";
  $("door-go").disabled = true;
  try {
    const a = await comeIn(registering ? "/api/register" : "/api/login", passwords ? { user, password } : { user });
    enter(a.token, a.user);
    $("password").value = "";
    $("door").close("in");
  } catch (err) {
    if (!(err instanceof Refusal)) wrong("user", "away");
    else if (err.status === 429 || err.status === 503) wrong("user", "sayLimited", { n: Math.max(1, err.after) });
    else if (err.code === "wrong_login") wrong("password", "wrongLogin");
    else if (err.code === "name_taken") wrong("user", "nameTaken");
    else wrong("user", "said", { message: err.message });
  } finally {
    $("door-go").disabled = false;
  }
});

// comeIn asks for a token. Where others used up the tries of that name there is a
// riddle before.
async function comeIn(path, body) {
  for (let tries = 0; ; tries++) {
    try {
      return await call("POST", path, body);
    } catch (e) {
      if (!["captcha_required", "captcha_wrong"].includes(e.code) || tries > 9) throw e;
      const solved = await riddleAt("/api/login/captcha?user=" + encodeURIComponent(body.user) + "&form=", e.code === "captcha_wrong");
      if (!solved) throw e;
      body = { ...body, ...solved };
    }
  }
}

// openDoor reports whether somebody came in.
export async function openDoor(why = "") {
  showDoor(why);
  const answer = ask($("door"));
  $("user").focus();
  return await answer === "in";
}

let riddle = null; // what is asked at the moment

async function showRiddle(words, again) {
  riddle = { ...riddle, words };
  const r = await call("GET", riddle.path + (words ? "text" : "picture"));
  riddle.ticket = r.ticket;
  $("riddle-image").hidden = words;
  if (!words) $("riddle-image").src = r.image;
  $("riddle-image").alt = text("riddleAlt");
  $("riddle-question").textContent = words ? `${r.question} = ?` : text("riddleRead");
  $("riddle-other").textContent = text(words ? "riddlePicture" : "riddleText");
  $("riddle-trouble").textContent = again ? text("riddleWrong") : "";
  $("riddle-answer").value = "";
}

const noRiddle = e => { $("riddle-trouble").textContent = e instanceof Refusal ? text("said", { message: e.message }) : text("away"); };

$("riddle-other").addEventListener("click", () => showRiddle(!riddle.words, false).then(() => $("riddle-answer").focus(), noRiddle));
$("riddle-form").addEventListener("submit", e => {
  e.preventDefault();
  if (!$("riddle-answer").value.trim()) return $("riddle-answer").focus();
  $("riddle").close("answered");
});

// askRiddle returns the ticket with an answer, or null.
export const askRiddle = (voucher, again) => riddleAt(`/api/vouchers/${voucher}/captcha?form=`, again);

async function riddleAt(path, again) {
  riddle = { path, words: riddle?.words || false };
  await showRiddle(riddle.words, again);
  const answer = ask($("riddle"));
  $("riddle-answer").focus();
  return await answer === "answered" ? { ticket: riddle.ticket, answer: $("riddle-answer").value.trim() } : null;
}

export async function sure(what) {
  $("sure-what").textContent = what;
  return await ask($("sure")) === "yes";
}
