// Where a message is written: a text, files, and a button.

import { element } from "./markup.js";

// composer fills a form. send is called with {text, files}, and post with a file, which returns its ID.
export function composer(form, { send, post }) {
  const input = element("textarea", { rows: 2, maxLength: 20000 });
  const chosen = element("input", { type: "file", multiple: true, className: "hidden", tabIndex: -1 });
  const attach = element("button", { type: "button", className: "quiet attach" }, "+");
  const submit = element("button", { type: "submit", className: "primary" });
  const list = element("ul", { className: "files", hidden: true });
  let files = [];
  let words = null;

  attach.addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", () => {
    files.push(...chosen.files);
    chosen.value = "";
    show();
  });
  input.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const text = input.value.trim();
    if ((!text && !files.length) || submit.disabled) return;
    submit.disabled = true;
    try {
      const ids = await Promise.all(files.map(post));
      await send({ text, files: ids });
      input.value = "";
      files = [];
      show();
    } finally {
      submit.disabled = false;
      input.focus();
    }
  });

  function show() {
    list.hidden = files.length === 0;
    list.replaceChildren(
      ...files.map((f, i) => {
        const remove = element("button", { type: "button", className: "quiet", title: words.remove(f.name) }, "✕");
        remove.setAttribute("aria-label", words.remove(f.name));
        remove.addEventListener("click", () => {
          files.splice(i, 1);
          show();
        });
        return element("li", {}, `${f.name} `, remove);
      }),
    );
  }

  form.replaceChildren(list, input, element("div", { className: "tools" }, attach, chosen, submit));
  return {
    // label says what it is for, in the person's language.
    label(w, label, placeholder) {
      words = w;
      input.setAttribute("aria-label", label);
      input.placeholder = placeholder;
      attach.title = w.attach;
      chosen.setAttribute("aria-label", w.attach);
      attach.setAttribute("aria-label", w.attach);
      submit.textContent = w.send;
    },
    focus: () => input.focus(),
  };
}
