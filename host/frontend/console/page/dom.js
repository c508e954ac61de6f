// The only place that creates elements. Text is always inserted as text: nothing from a plugin, a client or a caller can become markup or a
// script, and hidden characters are made visible.

const drawings = 'http://www.w3.org/2000/svg'

/**
 * h makes an element: h('a', {class: 'row', href: '#/x', onclick: f}, 'text', node, [more]).
 * Attributes and children that are null, undefined or false are omitted; true is an attribute without a value.
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

/** svg makes an SVG element, as h does. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(drawings, tag), attributes, children)
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : visible(value))
  }
  element.append(...nodes(children))
  return element
}

function nodes(children) {
  return children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false)
    .map(child => child instanceof Node ? child : visible(child))
}

/** put replaces the children of the element. */
export function put(element, ...children) {
  element.replaceChildren(...nodes(children))
  return element
}

let lastID = 0

/** uniqueID returns an ID that connects a label with its control. */
export function uniqueID(prefix) {
  return `${prefix}-${++lastID}`
}

// The host's list of hidden characters (internal/visible), and where some of them have a use: the emoji style after a symbol, the joiner between
// emoji, both joiners within scripts that have them. More than eight marks on one character are drawn over other lines.
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\p{Noncharacter_Code_Point}\p{Cs}\u2800]|(?<=[\p{Mn}\p{Me}]{8})[\p{Mn}\p{Me}]/gu
const seen = /[\n\t]|\r(?=\n)|[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/uy
const symbol = '[\\p{S}‼⁉]'
const joining = `[${['Arabic', 'Syriac', 'Mongolian', 'Nko', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu', 'Kannada', 'Malayalam',
  'Sinhala', 'Khmer', 'Myanmar', 'Tibetan'].map(script => `\\p{Script=${script}}`).join('')}]`
const joins = new RegExp(`(?<=${symbol})\\ufe0f|(?<=[0-9#*])\\ufe0f(?=\\u20e3)|(?<=${symbol}\\ufe0f?)\\u200d(?=${symbol})|(?<=${joining})[\\u200c\\u200d](?=${joining})`, 'uy')

/** visible marks characters that are invisible or change how others are displayed. */
export function visible(text) {
  return String(text).replace(hidden, (found, at, whole) => {
    seen.lastIndex = joins.lastIndex = at
    return seen.test(whole) || joins.test(whole) ? found : '␦'
  })
}

/** icon is an SVG icon. It is decorative: its meaning stands beside it as text. */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' },
    icons[name].map(d => svg('path', { d })))
}

const icons = {
  overview: ['M2 13.5h12', 'M4 13V8', 'M8 13V3', 'M12 13V6'],
  calls: ['M1.5 8h3l2-5 3 10 2-5h3'],
  approvals: ['M8 1.8 13.5 4v4c0 3.2-2.2 5.3-5.5 6.4C4.7 13.3 2.5 11.2 2.5 8V4z', 'M5.8 8l1.6 1.6L10.4 6.5'],
  plugins: ['M8 1.7 13.8 4.8v6.4L8 14.3 2.2 11.2V4.8z', 'M2.4 4.9 8 8l5.6-3.1', 'M8 8v6'],
  find: ['M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z', 'M10.4 10.4 14 14'],
  tools: ['M9.8 6.2 3 13', 'M13.8 4.6a3.4 3.4 0 0 1-4.6 3.6 3.4 3.4 0 0 1-1.4-4.6 3.4 3.4 0 0 1 3.7-1.6L9.7 3.9l.4 2 2 .4z'],
  toolsets: ['M2 3h12', 'M2 8h7', 'M2 13h7', 'M11.5 10.2l1.6 1.6 2.4-3'],
  audit: ['M3.5 1.8h6.5l2.5 2.5v9.9h-9z', 'M5.5 7h5', 'M5.5 9.5h5', 'M5.5 12h3'],
  errors: ['M8 2 14.5 13.5h-13z', 'M8 6.5v3.5', 'M8 11.8v.4'],
  tokens: ['M6 9.9a2.9 2.9 0 1 0 0-5.8 2.9 2.9 0 0 0 0 5.8z', 'M8.1 9 13.6 14.2', 'M11.2 12l1.6-1.6'],
  policy: ['M8 1.8v12.4', 'M4 14.2h8', 'M2.5 4h11', 'M4.5 4 2.3 9h4.4z', 'M11.5 4 9.3 9h4.4z'],
  sessions: ['M5.7 7.6a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6z', 'M1.6 13.2c.3-2.3 2-3.6 4.1-3.6s3.8 1.3 4.1 3.6', 'M10.4 3.2a2.3 2.3 0 0 1 0 4.2', 'M11.6 9.8c1.5.4 2.6 1.6 2.8 3.4'],
  connections: ['M5.5 8h5', 'M4.5 5.5a2.5 2.5 0 0 0 0 5', 'M11.5 5.5a2.5 2.5 0 0 1 0 5', 'M4.5 5.5h1.5', 'M4.5 10.5h1.5', 'M10 5.5h1.5', 'M10 10.5h1.5'],
  configuration: ['M2 4.5h6', 'M12 4.5h2', 'M2 11.5h2', 'M8 11.5h6', 'M10 2.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z', 'M6 9.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z'],
  menu: ['M2 4.5h12', 'M2 8h12', 'M2 11.5h12'],
  close: ['M4 4l8 8', 'M12 4l-8 8'],
  copy: ['M5.5 5.5h8v8h-8z', 'M3.5 10.5h-1v-8h8v1'],
  pause: ['M5.5 3.5v9', 'M10.5 3.5v9'],
  play: ['M5 3.5v9l7.5-4.5z'],
  theme: ['M8 2.5a5.5 5.5 0 1 0 0 11z', 'M8 2.5a5.5 5.5 0 1 1 0 11'],
  right: ['M6 3.5 10.5 8 6 12.5'],
}
