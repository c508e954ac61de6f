// The configuration in force, where each value comes from, and reading it anew.
import { h, put } from '../dom.js'
import { moment, t } from '../language.js'
import { code, guarded, head, problem } from '../parts.js'
import { post } from '../server.js'
import { table } from '../table.js'

export default function configuration(page) {
  const text = h('input', { type: 'search', placeholder: t('configuration.filter'), 'aria-label': t('configuration.filter') })
  const only = h('input', { type: 'checkbox', id: 'only-set' })
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
  const list = table({
    caption: t('nav.configuration'), rowKey: row => row.key, empty: t('configuration.empty'),
    columns: [
      { label: t('column.key'), cell: row => code(row.key) },
      { label: t('column.value'), cell: row => row.value === '' ? '–' : code(row.value) },
      { label: t('column.origin'), class: 'wide', cell: row => row.origin === 'default' ? h('span', { class: 'hint' }, t('configuration.default')) : row.origin },
    ],
  })
  const beside = h('div')
  put(page.root, head(t('nav.configuration'), beside), file, state,
    h('div', { class: 'tools' }, text, h('div', { class: 'check' }, only, h('label', { for: 'only-set' }, t('configuration.only')))), list.element)
  let items = []
  const show = () => list.update(items.filter(item => (!only.checked || item.origin !== 'default') &&
    `${item.key} ${item.value}`.toLowerCase().includes(text.value.trim().toLowerCase())))
  text.addEventListener('input', show)
  only.addEventListener('change', show)
  const load = page.poll(60_000, async () => {
    const answer = await page.get('configuration')
    items = answer.items
    put(file, answer.file ? [t('configuration.file'), ' ', code(answer.file)] : t('configuration.builtIn'))
    if (!beside.hasChildNodes()) put(beside, answer.reload.can && guarded(page.session, 'admin', reload))
    if (!state.hasChildNodes()) put(state, lastReload(answer.reload))
    show()
  })
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
