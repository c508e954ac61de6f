// The reader's settings for this browser (language, theme, single-letter keys) and their switches.
import { h } from './dom.js'
import { language, languages, speak, t } from './language.js'

const known = { language: ['en', 'ja'], theme: ['light', 'dark'], keys: ['off'] }

/** setting returns a choice, or undefined if the browser decides. */
export function setting(name) {
  try {
    const value = localStorage.getItem(`hako.${name}`)
    return known[name].includes(value) ? value : undefined
  } catch {
    return undefined // a browser that keeps nothing
  }
}

/** choose stores a choice; an empty one lets the browser decide. */
export function choose(name, value) {
  try {
    if (value) localStorage.setItem(`hako.${name}`, value)
    else localStorage.removeItem(`hako.${name}`)
  } catch {
    // The choice then applies to this page only.
  }
  if (name === 'theme') applyTheme(value)
}

/** applyTheme makes the page light, dark, or follow the system. */
export function applyTheme(theme = setting('theme')) {
  if (theme) document.documentElement.dataset.theme = theme
  else delete document.documentElement.dataset.theme
}

/** switches makes the controls; changed is called when the language has changed. */
export function switches(changed) {
  return h('div', { class: 'switches' },
    select(t('switch.language'), language, languages, value => {
      choose('language', value)
      speak(value).then(changed, () => {}) // without the server, it is the language after the next reload
    }),
    select(t('switch.theme'), setting('theme') ?? '', { '': t('theme.system'), light: t('theme.light'), dark: t('theme.dark') },
      value => choose('theme', value)))
}

function select(label, value, options, chosen) {
  const control = h('select', { 'aria-label': label, onchange: () => chosen(control.value) },
    Object.entries(options).map(([key, name]) => h('option', { value: key }, name)))
  control.value = value
  return control
}
