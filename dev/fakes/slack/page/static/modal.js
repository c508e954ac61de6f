// A modal: what the bot asks somebody, with fields to fill in.

import { element } from "./markup.js";
import { list } from "./message.js";

// modal renders a view. submit is called with what was written, as lists of texts by block, and resolves to what is wrong with it, by block, or to
// nothing once it is taken. leave is called when the person closes it.
export function modal(view, context, { submit, leave }) {
  const w = context.words;
  const inputs = (view.blocks ?? []).filter((b) => b.type === "input").map((b, i) => input(b, `in-${i}`, w));
  const queue = [...inputs];
  const body = (view.blocks ?? []).flatMap((b) => (b.type === "input" ? [queue.shift().element] : list([b], context)));
  const trouble = element("p", { className: "wrong", role: "alert", hidden: true });
  const close = element("button", { type: "button" }, view.close?.text ?? w.cancel);
  const send = element("button", { type: "submit", className: "primary" }, view.submit?.text ?? "");
  const form = element(
    "form",
    { noValidate: true },
    element("h2", { id: "modal-title", className: "head" }, view.title?.text ?? ""),
    element("div", { className: "fields", tabIndex: -1 }, ...body, trouble),
    element("div", { className: "actions" }, close, ...(view.submit ? [send] : [])),
  );
  const dialog = element("dialog", { className: "modal" }, form);
  dialog.setAttribute("aria-labelledby", "modal-title");

  // show says what is wrong: at its field, or below all of them.
  function show(problems) {
    const rest = { ...problems };
    for (const i of inputs) {
      i.complain(rest[i.block] ?? "");
      delete rest[i.block];
    }
    trouble.textContent = Object.values(rest).join(" ");
    trouble.hidden = !trouble.textContent;
    inputs.find((i) => problems[i.block])?.focus();
  }

  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    if (send.disabled) return;
    const missing = inputs.filter((i) => i.required && !i.values().some(Boolean));
    show(Object.fromEntries(missing.map((i) => [i.block, w.required])));
    if (missing.length) return;
    send.disabled = true;
    try {
      show((await submit(Object.fromEntries(inputs.map((i) => [i.block, i.values()])))) ?? {});
    } catch (failure) {
      show({ "": w.failed(failure.message) });
    } finally {
      send.disabled = false;
    }
  });
  close.addEventListener("click", leave);
  dialog.addEventListener("cancel", (e) => {
    e.preventDefault(); // it goes when the server says so
    leave();
  });
  return dialog;
}

// input is a field with its label and hint. values has its content.
function input(b, id, w) {
  const make = { plain_text_input: text, static_select: select, multi_static_select: boxes, radio_buttons: radios }[b.element.type];
  const field = make?.(b.element, id, w) ?? { element: element("p", { className: "note" }, w.unknownInput(b.element.type)), values: () => [], controls: [] };
  const optional = b.optional ? [element("span", { className: "note" }, ` ${w.optional}`)] : [];
  const wrong = element("p", { className: "wrong", id: `${id}-wrong`, hidden: true });
  const hint = b.hint ? [element("p", { className: "note", id: `${id}-hint` }, b.hint.text)] : [];
  const group = field.controls.length !== 1 || field.grouped;
  const e = group
    ? element("fieldset", { className: "field" }, element("legend", {}, b.label.text, ...optional), field.element, ...hint, wrong)
    : element("div", { className: "field" }, element("label", { htmlFor: id }, b.label.text, ...optional), field.element, ...hint, wrong);
  const described = group ? e : field.controls[0];
  const describe = () => {
    const by = [...hint, ...(wrong.hidden ? [] : [wrong])].map((d) => d.id).join(" ");
    if (by) described.setAttribute("aria-describedby", by);
    else described.removeAttribute("aria-describedby");
  };
  describe();
  return {
    block: b.block_id,
    required: !b.optional && field.controls.length > 0,
    element: e,
    values: field.values,
    focus: () => (field.controls.find((c) => c.checked) ?? field.controls[0])?.focus(),
    complain(problem) {
      wrong.textContent = problem;
      wrong.hidden = !problem;
      e.classList.toggle("invalid", Boolean(problem));
      if (!group) described.setAttribute("aria-invalid", String(Boolean(problem)));
      describe();
    },
  };
}

function text(e, id) {
  const control = e.multiline ? element("textarea", { id, rows: 4 }) : element("input", { id, type: "text", autocomplete: "off" });
  control.value = e.initial_value ?? "";
  return { element: control, controls: [control], values: () => [control.value] };
}

function select(e, id, w) {
  const option = (o) => element("option", { value: o.value, selected: o.value === e.initial_option?.value }, o.text.text);
  const control = element("select", { id }, element("option", { value: "" }, w.choose), ...e.options.map(option));
  return { element: control, controls: [control], values: () => (control.value ? [control.value] : []) };
}

const several = (type) => (e, id) => {
  const initial = [...(e.initial_options ?? []), ...(e.initial_option ? [e.initial_option] : [])].map((o) => o.value);
  const controls = e.options.map((o) => element("input", { type, name: id, value: o.value, checked: initial.includes(o.value) }));
  const rows = e.options.map((o, i) => element("label", {}, controls[i], ` ${o.text.text}`));
  return { element: element("div", { className: "options" }, ...rows), controls, grouped: true, values: () => controls.filter((c) => c.checked).map((c) => c.value) };
};
const boxes = several("checkbox");
const radios = several("radio");
