// The configuration in force: values with their sources, defaults, and the reload.
import { h, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { moment, number, t } from '../language.js'
import { code, guarded, head, problem } from '../parts.js'
import { post } from '../server.js'
import { table } from '../table.js'

export default function configuration(page) {
  const narrow = filters(page, () => show())
  const text = narrow.search(t('configuration.filter'))
  const file = h('p', { class: 'hint' })
  const state = h('div', { role: 'status' })
  const reload = h('button', { type: 'button', class: 'primary', onclick: async () => {
    reload.disabled = true
    try {
      put(state, reloaded(await post('configuration/reload', {})))
      load()
    } catch (error) {
      put(state, problem(error))
    }
    reload.disabled = false
  } }, t('configuration.reload'))
  const set = table({
    caption: t('configuration.set'), rowKey: row => row.key, empty: t('configuration.builtIn'), narrow,
    columns: [
      { label: t('column.key'), cell: row => code(row.key) },
      { label: t('column.value'), class: 'grow', cell: row => [value(row), usually(row), h('small', { class: 'narrow' }, origin(row.origin))] },
      { label: t('column.origin'), class: 'wide', cell: row => origin(row.origin) },
    ],
  })
  const unset = table({
    caption: t('configuration.unset'), rowKey: row => row.key, narrow,
    columns: [{ label: t('column.key'), cell: row => code(row.key) }, { label: t('column.value'), class: 'grow', cell: value }],
  })
  const count = h('summary')
  const rest = h('details', { class: 'rest' }, count, unset.element)
  const beside = h('div')
  put(page.root, head(t('nav.configuration'), file, beside), state, h('div', { class: 'tools' }, text), set.element, rest)
  let items = []
  const show = () => {
    const found = items.filter(item => has(text.value, item.key, item.value, item.origin))
    const [changed, defaults] = [found.filter(item => item.origin !== 'default'), found.filter(item => item.origin === 'default')]
    set.update(changed)
    unset.update(defaults)
    put(count, t('configuration.defaults', { n: number(defaults.length) }))
    if (narrow.narrowed()) rest.open = defaults.length > 0
  }
  const load = page.poll(60_000, async () => {
    const answer = await page.get('configuration')
    items = answer.items
    put(file, answer.file ? [t('configuration.file'), ' ', code(answer.file)] : t('configuration.builtIn'))
    if (!beside.hasChildNodes()) put(beside, answer.reload.can && guarded(page.session, 'admin', reload))
    if (!state.hasChildNodes()) put(state, lastReload(answer.reload))
    show()
  })
}

function value({ value }) {
  return value === '' ? '–' : code(value)
}

/** usually shows the default of a setting, if it has one. */
function usually({ value, default: usual }) {
  if (!usual) return null
  return h('small', {}, usual === value ? t('configuration.asDefault') : [t('configuration.default'), ' ', code(usual)])
}

/** origin shows the source of a value: a line of the file, a variable or a flag. */
function origin(text) {
  const [, kind, name] = /^(env|flag) (.+)$/.exec(text) ?? []
  return kind ? [t(`origin.${kind}`), ' ', code(name)] : code(text)
}

function reloaded({ changed, needRestart, others = [], warnings = [], unchanged }) {
  const warned = warnings.map(text => h('p', { class: 'notice' }, text))
  if (unchanged) return [h('p', { class: 'notice good' }, t('configuration.unchanged')), warned]
  return [
    changed.length > 0 && h('div', { class: 'notice good' }, h('p', {}, t('configuration.applied')), keys(changed)),
    needRestart.length > 0 && h('div', { class: 'notice' }, h('p', {}, t('configuration.restart')), keys(needRestart)),
    others.length > 0 && h('div', { class: 'notice' }, h('p', {}, t('configuration.others')), keys(others)),
    warned,
  ]
}

function lastReload({ last, ok, error, pending }) {
  return [
    last && !ok && h('div', { class: 'problem' }, h('p', {}, t('configuration.failed', { at: moment(last) })), h('p', {}, error ?? '')),
    pending?.length > 0 && h('div', { class: 'notice' }, h('p', {}, t('configuration.restart')), keys(pending)),
  ]
}

function keys(names) {
  return h('ul', { class: 'lines' }, names.map(name => h('li', {}, code(name))))
}
