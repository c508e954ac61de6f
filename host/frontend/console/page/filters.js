// Filters of a list: a search and choices. The address has them, so that a link, a reload and "back" show the same.
import { h } from './dom.js'
import { t } from './language.js'

/** filters makes the controls of a list. changed is called on every change; narrowed reports whether a filter is set, clear resets all. */
export function filters(page, changed) {
  const controls = []
  const keep = (name, control) => {
    control.value = page.query.get(name) ?? ''
    if (control.selectedIndex === -1) control.value = '' // an address may have anything
    control.addEventListener('input', () => {
      page.note(name, control.value)
      changed()
    })
    controls.push(control)
    return control
  }
  return {
    search: label => keep('q', h('input', { type: 'search', placeholder: label, 'aria-label': label, autocomplete: 'off' })),
    /** choice has a text for each value; '' means all. */
    choice: (name, label, texts) => keep(name, h('select', { 'aria-label': label }, Object.entries(texts).map(([value, text]) => h('option', { value }, text)))),
    narrowed: () => controls.some(control => control.value !== ''),
    clear() {
      for (const control of controls) {
        control.value = ''
        control.dispatchEvent(new Event('input'))
      }
    },
  }
}

/** has reports whether the texts contain all words, ignoring case. */
export function has(words, ...texts) {
  const hay = texts.flat().join(' ').toLowerCase()
  return words.toLowerCase().split(/\s+/).every(word => hay.includes(word))
}

/** nothing is shown if the filters leave no rows. */
export function nothing({ clear }) {
  return [h('span', {}, t('filter.nothing')), ' ', h('button', { type: 'button', class: 'small', onclick: clear }, t('filter.clear'))]
}
