// The command menu: it finds views, plugins, tools, calls and searches of the audit log by a part of their names. And the list of keys.
import { showDialog } from './dialog.js'
import { h, put, uniqueID } from './dom.js'
import { has } from './filters.js'
import { letters, openMenu } from './keys.js'
import { t } from './language.js'
import { views } from './nav.js'
import { pages, segment } from './server.js'
import { choose, setting } from './settings.js'

const most = 12

/** menu opens the menu. A match is selected with the arrow keys and Enter, or with a click. */
export function menu() {
  const list = h('ul', { id: uniqueID('found'), role: 'listbox', class: 'found', 'aria-label': t('menu.open') })
  const text = h('input', { type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': list.id, 'aria-autocomplete': 'list', autocomplete: 'off', placeholder: t('menu.hint'), 'aria-label': t('menu.hint') })
  const dialog = showDialog({ title: t('menu.open'), body: [text, list, h('p', {}, h('button', { type: 'button', class: 'small', onclick: () => {
    dialog.close()
    help()
  } }, t('keys.title')))] })
  const ended = new AbortController()
  dialog.addEventListener('close', () => ended.abort())
  let places = views.map(name => ({ kind: t('menu.view'), name: t(`nav.${name}`), words: name, hash: `#/${name}` }))
  let found = []
  let at = 0
  const go = ({ hash }) => {
    dialog.close()
    location.hash = hash
  }
  const mark = index => {
    at = Math.max(0, Math.min(found.length - 1, index))
    ;[...list.children].forEach((item, i) => item.setAttribute('aria-selected', String(i === at)))
    text.setAttribute('aria-activedescendant', list.children[at]?.id ?? '')
    list.children[at]?.scrollIntoView({ block: 'nearest' })
  }
  const show = () => {
    const wanted = text.value.trim()
    const begins = place => place.name.toLowerCase().startsWith(wanted.toLowerCase())
    found = places.filter(place => has(wanted, place.name, place.words)).toSorted((a, b) => begins(b) - begins(a)).slice(0, wanted ? most : views.length)
    if (/^call_\w+$/.test(wanted)) found.unshift({ kind: t('menu.call'), name: wanted, hash: `#/calls/${wanted}` })
    if (wanted) found.push({ kind: t('nav.audit'), name: t('menu.audit', { text: wanted }), hash: `#/audit?text=${segment(wanted)}` })
    put(list, found.map(place => h('li', { id: uniqueID('place'), role: 'option', onclick: () => go(place) }, h('span', {}, place.name), ' ', h('small', {}, place.kind))))
    mark(0)
  }
  text.addEventListener('input', show)
  text.addEventListener('keydown', event => {
    if (event.isComposing) return
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key]
    if (to === undefined && event.key !== 'Enter') return
    event.preventDefault()
    if (to !== undefined) mark(to)
    else if (found[at]) go(found[at])
  })
  show()
  text.focus()
  // If they cannot be loaded, the menu still has the views.
  Promise.all([pages('plugins', {}, ended.signal), pages('tools', {}, ended.signal)]).then(([plugins, tools]) => {
    places = [...places,
      ...plugins.filter(({ name }) => name).map(({ name, title }) => ({ kind: t('column.plugin'), name, words: title, hash: `#/plugins/${segment(name)}` })),
      ...tools.map(({ name, title }) => ({ kind: t('column.tool'), name, words: title, hash: `#/tools/${segment(name)}` }))]
    if (text.value.trim()) show()
  }, () => {})
}

/** help lists the keys, and has the switch for single-letter keys. */
export function help() {
  const key = name => h('kbd', {}, name)
  const single = h('input', { type: 'checkbox', checked: !setting('keys'), onchange: () => choose('keys', single.checked ? '' : 'off') })
  const dialog = showDialog({ title: t('keys.title'), body: [
    h('dl', { class: 'keys' }, [
      [[key('Ctrl'), ' ', key('K')], h('button', { type: 'button', class: 'small', onclick: () => {
        dialog.close()
        openMenu()
      } }, t('menu.open'))],
      [key('/'), t('keys.search')], [key('?'), t('keys.title')], [[key('↑'), ' ', key('↓')], t('keys.rows')], [key('Esc'), t('keys.close')],
      ...Object.entries(letters).filter(([, view]) => views.includes(view)).map(([letter, view]) => [[key('g'), ' ', key(letter)], t(`nav.${view}`)]),
    ].map(([keys, text]) => h('div', {}, h('dt', {}, keys), h('dd', {}, text)))),
    h('label', { class: 'check' }, single, t('keys.single')),
  ] })
}
