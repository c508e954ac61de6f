// A form made from a tool's input schema. The schema is untrusted: parts that the form cannot show become JSON fields, nothing of it is
// executed (the server checks patterns), and its size is bounded.
import { h, put, visible } from './dom.js'
import { FieldError, labelled } from './field.js'
import { t } from './language.js'

const deepest = 5
const mostProperties = 60
const mostItems = 60
const mostChoices = 200
const mostFields = 300

/**
 * schemaForm makes the fields for schema, filled with the values that fit. read returns the arguments, or undefined after it has marked and
 * focused the invalid fields.
 */
export function schemaForm(schema, values) {
  const whole = resolved(schema, schema)
  const around = { schema: values === undefined ? whole : { ...whole, default: values }, form: { schema: whole, left: mostFields }, depth: 0, required: true }
  const empty = whole.properties === undefined && whole.additionalProperties === false
  const top = empty || presentable(whole) ? objectField(around) : jsonField({ ...around, name: t('form.arguments') })
  return { element: h('div', { class: 'fields' }, top.element), read: () => marked(() => top.read()) }
}

/** jsonForm is one field for all the arguments as JSON. */
export function jsonForm(values) {
  const top = jsonField({ schema: { default: values }, depth: 0, required: true, name: t('form.arguments') })
  return {
    element: h('div', { class: 'fields' }, top.element),
    read: () => marked(() => {
      const value = top.read()
      return plain(value) ? value : top.fail(t('form.notObject'))
    }),
  }
}

function marked(read) {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof FieldError)) throw error
    error.field.mark(error.message)
    return undefined
  }
}

/** field picks the kind of field. around is {schema, form, depth, required, name}, where form has the whole schema and the number of fields left. */
function field(around) {
  const schema = resolved(around.schema, around.form.schema)
  const inner = { ...around, schema }
  const deep = around.depth >= deepest
  if (around.form.left-- <= 0) return jsonField(inner)
  if ('const' in schema) return choiceField({ ...inner, schema: { ...schema, enum: [schema.const] } })
  if (Array.isArray(schema.enum) && schema.enum.length <= mostChoices) return choiceField(inner)
  switch (typeOf(schema)) {
    case 'string': return textField(inner)
    case 'number':
    case 'integer': return numberField(inner)
    case 'boolean': return around.required ? checkField(inner) : choiceField({ ...inner, schema: { ...schema, enum: [true, false] } })
    case 'array': return plain(schema.items) && !deep ? listField(inner) : jsonField(inner)
    case 'object': return presentable(schema) && !alternatives.some(key => key in schema) && !deep ? objectField(inner) : jsonField(inner)
  }
  return jsonField(inner)
}

// Keywords that say more about an object than its properties. At the top level the properties are shown anyway, and the host validates the rest.
const alternatives = ['oneOf', 'anyOf', 'allOf', 'not', 'if', 'patternProperties']

/** typeOf returns the type, ignoring null in a list of types. */
function typeOf({ type }) {
  const types = Array.isArray(type) ? type.filter(name => name !== 'null') : [type]
  return types.length === 1 ? types[0] : undefined
}

function plain(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

function presentable(schema) {
  return plain(schema.properties) && Object.keys(schema.properties).length <= mostProperties
}

/** resolved follows references within the whole schema, up to a bounded depth. */
function resolved(schema, whole) {
  for (let i = 0; i < deepest && plain(schema) && typeof schema.$ref === 'string'; i++) {
    const { $ref: reference, ...beside } = schema
    const target = targetOf(reference, whole)
    if (!plain(target)) return beside
    schema = { ...target, ...beside }
  }
  return plain(schema) ? schema : {}
}

/** targetOf resolves a reference such as "#/$defs/area"; undefined if the schema has no such part. */
function targetOf(reference, whole) {
  const [root, ...steps] = reference.split('/').map(decode)
  return root === '#' ? steps.reduce((at, name) => plain(at) && Object.hasOwn(at, name) ? at[name] : undefined, whole) : undefined
}

function decode(step) {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return step
  }
}

function textField(around) {
  const { schema, required } = around
  const long = !(schema.maxLength <= 120) && !schema.format && /(^|[_-])(content|text|body|message|query|sql|description)$/i.test(around.name ?? '')
  const control = long ? h('textarea', { rows: 3, spellcheck: 'false' }) : h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false' })
  if (typeof schema.default === 'string') control.value = schema.default
  const example = Array.isArray(schema.examples) ? schema.examples[0] : schema.format
  if (typeof example === 'string') control.placeholder = visible(example)
  const made = labelled(around, control)
  made.read = () => {
    if (control.value !== '') return control.value
    return required ? (schema.minLength > 0 ? made.fail(t('form.missing')) : '') : undefined
  }
  return made
}

function numberField(around) {
  const { schema, required } = around
  const control = h('input', { type: 'text', inputmode: typeOf(schema) === 'integer' ? 'numeric' : 'decimal', autocomplete: 'off' })
  if (typeof schema.default === 'number') control.value = String(schema.default)
  const bounds = [schema.minimum, schema.maximum]
  if (bounds.some(bound => typeof bound === 'number')) control.placeholder = bounds.map(bound => bound ?? '').join(' – ')
  const made = labelled(around, control)
  made.read = () => {
    const text = control.value.trim()
    if (text === '') return required ? made.fail(t('form.missing')) : undefined
    const value = Number(text)
    if (!Number.isFinite(value) || (typeOf(schema) === 'integer' && !Number.isInteger(value))) {
      made.fail(t(typeOf(schema) === 'integer' ? 'form.integer' : 'form.number'))
    }
    return value
  }
  return made
}

function checkField(around) {
  const control = h('input', { type: 'checkbox' })
  control.checked = around.schema.default === true
  const made = labelled(around, control, { beside: true })
  made.read = () => control.checked
  return made
}

function choiceField(around) {
  const { schema, required } = around
  const control = h('select', {}, h('option', { value: '' }, required ? t('form.choose') : t('form.unset')),
    schema.enum.map((value, i) => h('option', { value: i }, typeof value === 'string' ? value : JSON.stringify(value))))
  const only = required && 'const' in schema ? 0 : -1
  const preset = 'default' in schema ? schema.enum.findIndex(value => value === schema.default) : only
  if (preset >= 0) control.value = String(preset)
  const made = labelled(around, control)
  made.read = () => {
    if (control.value !== '') return schema.enum[Number(control.value)]
    return required ? made.fail(t('form.missing')) : undefined
  }
  return made
}

function jsonField(around) {
  const { schema, required } = around
  const control = h('textarea', { rows: 3, class: 'code', spellcheck: 'false', placeholder: 'JSON' })
  if ('default' in schema) control.value = JSON.stringify(schema.default, null, 2)
  const made = labelled({ ...around, schema: { ...schema, description: [schema.description, t('form.json')].filter(Boolean).join(' ') } }, control)
  made.read = () => {
    if (control.value.trim() === '') return required ? made.fail(t('form.missing')) : undefined
    try {
      return JSON.parse(control.value)
    } catch (error) {
      return made.fail(t('form.notJSON', { error: error.message }))
    }
  }
  return made
}

function listField(around) {
  const { schema, required, name, depth, form } = around
  const items = []
  const list = h('div', { class: 'items' })
  const add = h('button', { type: 'button', class: 'small' }, t('form.add'))
  const element = h('fieldset', {}, h('legend', {}, name ?? t('form.list'), required && h('span', { class: 'required' }, t('form.required'))),
    schema.description && h('p', { class: 'hint' }, schema.description), list, add)
  const grow = preset => {
    const item = field({ schema: preset === undefined ? schema.items : { ...schema.items, default: preset }, form, depth: depth + 1, required: true,
      name: `${name ?? t('form.value')} ${items.length + 1}` })
    const row = h('div', { class: 'item' }, item.element,
      h('button', { type: 'button', class: 'small', onclick: () => {
        items.splice(items.indexOf(item), 1)
        row.remove()
        add.focus()
      } }, t('form.remove')))
    items.push(item)
    list.append(row)
    return row
  }
  add.addEventListener('click', () => {
    if (items.length < mostItems) grow().querySelector('input, textarea, select')?.focus()
  })
  if (Array.isArray(schema.default)) schema.default.slice(0, mostItems).forEach(value => grow(value))
  return { element, read: () => items.length === 0 && !required ? undefined : items.map(item => item.read()) }
}

function objectField(around) {
  const { schema, form, depth, name, required } = around
  const wanted = Array.isArray(schema.required) ? schema.required : []
  const names = Object.keys(schema.properties ?? {}).sort((a, b) => wanted.includes(b) - wanted.includes(a))
  const fields = names.map(key => [key, field({ schema: preset(schema, key), form, depth: depth + 1, name: key, required: wanted.includes(key) })])
  const element = depth === 0 ? h('div', {}) : h('fieldset', {}, h('legend', {}, name ?? ''),
    schema.description && h('p', { class: 'hint' }, schema.description))
  element.append(...fields.map(([, f]) => f.element))
  if (depth === 0 && fields.length === 0) put(element, h('p', { class: 'hint' }, t('form.nothing')))
  let touched = required || plain(schema.default)
  for (const event of ['input', 'click']) element.addEventListener(event, () => { touched = true })
  return { element, read: () => touched && (required || !blank(element)) ? collected(fields) : undefined }
}

/** preset returns the schema of a member, with its value from the object's default. */
function preset(schema, key) {
  const member = schema.properties[key]
  return plain(schema.default) && Object.hasOwn(schema.default, key) && plain(member) ? { ...member, default: schema.default[key] } : member
}

/** collected returns an object of the fields that are not empty. */
function collected(fields) {
  return Object.fromEntries(fields.map(([key, f]) => [key, f.read()]).filter(([, value]) => value !== undefined))
}

function blank(element) {
  return [...element.querySelectorAll('input, textarea, select')].every(control => control.type === 'checkbox' ? !control.checked : control.value === '')
}
