// The audit log: search and verification.
import { showDialog } from '../dialog.js'
import { h, put, uniqueID } from '../dom.js'
import { bytes, moment, number, t, term, who } from '../language.js'
import { badge, callLink, card, code, copyable, facts, head, listing, problem, ruleLink, took, when, why } from '../parts.js'
import { address, post } from '../server.js'
import { table } from '../table.js'

const types = ['tools/call', 'resources/read', 'prompts/get', 'completion/complete', 'operator']
const spans = { hour: 3600e3, day: 86_400e3, week: 7 * 86_400e3 }
const formats = ['jsonl', 'csv']
const outcomes = ['ok', 'tool_error', 'invalid_arguments', 'invalid_result', 'not_found', 'not_allowed', 'asked', 'timeout', 'cpu', 'memory', 'size', 'busy',
  'trap', 'canceled', 'stopped', 'internal', 'failed', 'refused']

export default function audit(page) {
  const search = searchForm(page)
  const list = table({
    caption: t('nav.audit'), rowKey: row => row.seq, open: showRecord, empty: t('audit.empty'), narrow: search,
    columns: [
      { label: t('column.time'), class: 'nowrap', cell: row => when(row.time) },
      { label: t('column.what'), cell: row => [code(row.action || row.name || row.type), row.plugin && h('small', {}, row.plugin)] },
      { label: t('column.who'), class: 'wide', cell: whose },
      { label: t('column.frontend'), class: 'wide', cell: row => row.who?.frontend ? term('frontend', row.who.frontend) : '–' },
      { label: t('column.decision'), class: 'wide', cell: row => row.decision ? badge('decision', row.decision) : '–' },
      { label: t('column.outcome'), cell: row => row.outcome ? badge('outcome', row.outcome) : '–' },
      { label: t('column.took'), class: 'number wide', cell: row => took(row.durationMs) },
    ],
  })
  const more = h('button', { type: 'button', hidden: true })
  const trouble = h('div', { role: 'alert' })
  let rows = []
  let next
  let parameters // of the search whose records are shown
  const exports = formats.map(format => h('a', { class: 'button', download: true, title: t('audit.exportAbout') }, t(`audit.export.${format}`)))
  const load = async fresh => {
    if (fresh) parameters = search.parameters()
    exports.forEach((link, i) => { link.href = address('audit/export', { ...parameters, format: formats[i] }) })
    more.disabled = true
    try {
      const found = await page.get('audit', { ...parameters, cursor: fresh ? undefined : next })
      rows = fresh ? found.items : [...rows, ...found.items]
      next = found.next
      put(trouble)
      list.update(rows)
      more.hidden = !next
      put(more, found.searched ? t('audit.further', { at: moment(found.searched) }) : t('audit.more'))
    } finally {
      more.disabled = false
    }
  }
  const tell = error => error.name !== 'AbortError' && put(trouble, problem(error))
  more.addEventListener('click', () => load(false).catch(tell))
  search.element.addEventListener('submit', event => {
    event.preventDefault()
    search.note()
    load(true).catch(tell)
  })
  put(page.root, head(t('nav.audit'), h('span', { class: 'actions' }, exports)), verification(page), search.element, trouble, list.element, more)
  page.once(() => load(true))
}

/** searchForm is the search form, filled from the address. On a phone all but the text is folded. */
function searchForm(page) {
  const given = name => page.query.get(name) ?? ''
  const text = (name, label, type = 'search') => labelled(label, h('input', { type, name, maxlength: 200, autocomplete: 'off', value: given(name) }))
  const choice = (name, label, texts) => labelled(label, h('select', { name, onchange: () => element.requestSubmit() },
    Object.entries(texts).map(([value, text]) => h('option', { value, selected: given(name) === value }, text))))
  const any = (set, values) => ({ '': t('audit.any'), ...Object.fromEntries(values.map(value => [value, term(set, value)])) })
  const between = [text('from', t('audit.from'), 'datetime-local'), text('to', t('audit.to'), 'datetime-local')]
  const fold = h('button', { type: 'button', class: 'fold', 'aria-expanded': 'false', onclick: () => {
    fold.setAttribute('aria-expanded', String(element.classList.toggle('open')))
  } })
  const element = h('form', { class: 'search folded' },
    text('text', t('audit.text')), choice('span', t('span.label'), any('span', Object.keys(spans))), text('tool', t('column.tool')), text('plugin', t('column.plugin')),
    text('user', t('column.who')), choice('type', t('column.method'), any('type', types)), choice('outcome', t('column.outcome'), any('outcome', outcomes)), between,
    h('button', { type: 'submit', class: 'primary' }, t('audit.search')), fold)
  const filled = () => {
    const values = Object.fromEntries([...new FormData(element)].filter(([, value]) => value !== ''))
    return values.span ? { ...values, from: undefined, to: undefined } : values
  }
  const note = () => {
    const values = filled()
    for (const { name } of element.querySelectorAll('[name]')) page.note(name, values[name])
    for (const field of between) field.hidden = Boolean(values.span)
    put(fold, t('audit.filters', { n: Object.entries(values).filter(([name, value]) => name !== 'text' && value).length }))
  }
  note()
  return {
    element, note,
    narrowed: () => Object.keys(filled()).length > 0,
    clear() {
      for (const control of element.querySelectorAll('[name]')) control.value = ''
      element.requestSubmit()
    },
    parameters() {
      const { span, from, to, ...values } = filled()
      const time = text => text && new Date(text).toISOString()
      return { ...values, from: span ? new Date(Date.now() - spans[span]).toISOString() : time(from), to: time(to) }
    },
  }
}

function labelled(label, control) {
  control.id = uniqueID('search')
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control)
}

/** verification shows the result of the last verification, and starts another. */
function verification(page) {
  const state = h('div', { role: 'status' })
  const again = h('button', { type: 'button', onclick: async () => {
    again.disabled = true
    try {
      show(await post('audit/verify', {}))
      look()
    } catch (error) {
      put(state, problem(error))
      again.disabled = false
    }
  } }, t('audit.verify'))
  const show = check => {
    put(state, verdict(check))
    again.disabled = check.state === 'running'
  }
  const look = async () => {
    try {
      const check = await page.get('audit/verification')
      show(check)
      if (check.state === 'running') setTimeout(look, 1000)
    } catch (error) {
      if (error.name !== 'AbortError') put(state, problem(error))
    }
  }
  look()
  return h('section', { class: 'card verification', 'aria-label': t('audit.verification') }, state, again)
}

function verdict(check) {
  switch (check.state) {
    case 'never': return h('p', {}, t('audit.never'))
    case 'running': return h('p', {}, t('audit.running'))
    case 'failed': return h('p', { class: 'problem' }, t('audit.failed'), ' ', check.error ?? '')
  }
  const counts = [
    t('audit.counts', { records: number(check.records), at: moment(check.finished) }), ' ',
    check.signed ? t('audit.signed', { signed: number(check.signed) }) : t('audit.unsigned'),
  ]
  if (check.ok) return [h('p', { class: 'good' }, h('strong', {}, t('audit.whole'))), h('p', { class: 'hint' }, counts), h('p', { class: 'hint' }, t('audit.head'), ' ', code(check.head))]
  return [h('p', { class: 'problem' }, h('strong', {}, t('audit.changed'))), h('ul', { class: 'lines' }, check.problems.map(text => h('li', {}, text))), h('p', { class: 'hint' }, counts)]
}

/** whose returns the actor of a record, or a dash if the host acted by itself. */
function whose(row) {
  return row.type === 'operator' && !row.who?.user ? '–' : who(row.who)
}

/** only links to the records of the current search that also have the value, with the shown text. */
function only(name, value, shown = value) {
  if (!value) return null
  const query = new URLSearchParams(location.hash.startsWith('#/audit?') ? location.hash.slice('#/audit?'.length) : '')
  query.set(name, value)
  return h('a', { href: `#/audit?${query}`, title: t('audit.only') }, shown)
}

/** showRecord shows a record in a dialog. */
export function showRecord(row) {
  const { who: caller = {} } = row
  const id = row.call ?? row.detail?.call
  showDialog({
    title: t('audit.record', { seq: row.seq }), side: true,
    body: [
      facts([
        [t('column.time'), when(row.time)], [t('column.method'), term('type', row.type)], [t('column.action'), row.action && code(row.action)],
        [t('column.tool'), only('tool', row.name, code(row.name))], [t('column.plugin'), only('plugin', row.plugin)],
        [t('column.outcome'), row.outcome && badge('outcome', row.outcome)], [t('column.took'), row.durationMs && took(row.durationMs)],
        [t('column.who'), caller.user ? [only('user', caller.user), caller.tenant && ` (${caller.tenant})`] : whose(row)], [t('column.token'), caller.token], [t('column.frontend'), caller.frontend && term('frontend', caller.frontend)],
        [t('column.session'), copyable(caller.session)], [t('column.address'), caller.address], [t('column.client'), caller.client],
        [t('column.decision'), row.decision && [badge('decision', row.decision), ' ', why(row)]], [t('column.rule'), ruleLink(row.rule)],
        [t('column.approval'), row.approval && [badge('answer', row.approval.answer), ' ', row.approval.by ?? '']],
        [t('column.input'), row.inputBytes && bytes(row.inputBytes)], [t('column.output'), row.outputBytes && bytes(row.outputBytes)],
        [t('call.id'), callLink(id)],
        [t('call.parent'), callLink(row.parent)],
        [t('call.httpRequest'), copyable(row.httpRequestId)], [t('column.trace'), copyable(row.traceId)], [t('column.error'), row.error],
      ]),
      row.findings?.length > 0 && card(t('audit.findings'), h('ul', { class: 'lines' }, row.findings.map(f => h('li', {}, `${f.rule} (${f.place}): ${f.action}`)))),
      row.detail && card(t('audit.detail'), facts(Object.entries(row.detail).map(([key, value]) => [code(key), String(value)]))),
      row.fields && card(t('audit.fields'), listing(JSON.stringify(row.fields, null, 2), t('audit.fields'))),
    ],
  })
}
