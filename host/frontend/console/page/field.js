// One field of a form: its name, description, control and error.
import { h, uniqueID, visible } from './dom.js'
import { t } from './language.js'

/** FieldError means that a field's content is not a value of its type. */
export class FieldError extends Error {
  constructor(field, message) {
    super(message)
    this.field = field
  }
}

/** labelled adds the name, the description and the place for an error to a control. */
export function labelled({ schema, name, required }, control, { beside } = {}) {
  const id = uniqueID('field')
  control.id = id
  const hint = schema.description ? h('p', { class: 'hint', id: `${id}-hint` }, schema.description) : null
  const trouble = h('p', { class: 'trouble', id: `${id}-trouble`, hidden: true })
  control.setAttribute('aria-describedby', [hint && `${id}-hint`, `${id}-trouble`].filter(Boolean).join(' '))
  if (required) control.setAttribute('aria-required', 'true')
  const label = h('label', { for: id }, name ?? t('form.value'), required && h('span', { class: 'required' }, t('form.required')))
  const element = h('div', { class: 'field' }, beside ? h('div', { class: 'check' }, control, label) : [label, control], hint, trouble)
  const made = {
    element,
    mark(message) {
      trouble.textContent = visible(message)
      trouble.hidden = false
      control.setAttribute('aria-invalid', 'true')
      control.focus()
    },
    fail(message) {
      throw new FieldError(made, message)
    },
  }
  control.addEventListener('input', () => {
    trouble.hidden = true
    control.removeAttribute('aria-invalid')
  })
  return made
}
