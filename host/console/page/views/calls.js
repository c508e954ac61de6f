// Calls as they end.
import { showDialog } from '../dialog.js'
import { h, icon, put } from '../dom.js'
import { bytes, t, term, who } from '../language.js'
import { badge, code, facts, head, took, when } from '../parts.js'
import { live, recent } from '../server.js'
import { table } from '../table.js'

const most = 200

export default function calls(page) {
  let held = null // the calls at the moment of pausing
  let missed = 0
  let dropped = 0
  const state = h('p', { class: 'hint', role: 'status' })
  const text = h('input', { type: 'search', placeholder: t('calls.filter'), 'aria-label': t('calls.filter') })
  const outcome = h('select', { 'aria-label': t('column.outcome') },
    ['all', 'failed', 'denied'].map(value => h('option', { value }, t(`calls.${value}`))))
  const pause = h('button', { type: 'button', 'aria-pressed': 'false' })
  const list = table({
    caption: t('nav.calls'), rowKey: row => row.id, open: showCall, empty: t('calls.empty'),
    columns: [
      { label: t('column.time'), class: 'nowrap', cell: row => when(row.time) },
      { label: t('column.what'), cell: row => [code(row.tool || t('calls.unknown')), row.method !== 'tools/call' && h('small', {}, row.method)] },
      { label: t('column.who'), class: 'wide', cell: row => who(row) },
      { label: t('column.frontend'), class: 'wide', cell: row => term('frontend', row.frontend) },
      { label: t('column.outcome'), cell: row => badge('outcome', row.outcome) },
      { label: t('column.took'), class: 'number', cell: row => took(row.durationMs) },
    ],
  })
  put(page.root, head(t('nav.calls'), state), h('div', { class: 'tools' }, pause, text, outcome), list.element)

  const show = () => {
    list.update((held ?? recent).filter(call => matches(call, text.value, outcome.value)).slice(0, most))
    put(pause, held ? [icon('play'), t('calls.resume')] : [icon('pause'), t('calls.pause')])
    pause.setAttribute('aria-pressed', String(held !== null))
    const notes = [held && t('calls.missed', { n: missed }), dropped > 0 && t('calls.dropped', { n: dropped })]
    put(state, notes.filter(Boolean).join(' '))
  }
  pause.addEventListener('click', () => {
    held = held ? null : [...recent]
    missed = 0
    show()
  })
  text.addEventListener('input', show)
  outcome.addEventListener('change', show)
  let drawing = false
  const soon = () => {
    if (drawing) return
    drawing = true
    setTimeout(() => {
      drawing = false
      if (!page.signal.aborted) show()
    }, 250)
  }
  live.addEventListener('call', () => {
    if (held) missed++
    soon()
  }, { signal: page.signal })
  live.addEventListener('dropped', event => {
    dropped += event.detail.count
    soon()
  }, { signal: page.signal })
  show()
}

function matches(call, text, outcome) {
  if (outcome === 'failed' && !call.failed) return false
  if (outcome === 'denied' && call.outcome !== 'not_allowed') return false
  const hay = [call.tool, call.plugin, call.user, call.tenant, call.frontend, call.outcome, call.rule, call.method].join(' ').toLowerCase()
  return hay.includes(text.trim().toLowerCase())
}

function showCall(call) {
  showDialog({
    title: call.tool || call.method, side: true,
    body: [
      facts([
        [t('column.time'), when(call.time)], [t('column.outcome'), badge('outcome', call.outcome)], [t('column.took'), took(call.durationMs)],
        [t('column.method'), call.method], [t('column.plugin'), call.plugin && h('a', { href: `#/plugins/${encodeURIComponent(call.plugin)}` }, call.plugin)],
        [t('column.who'), who(call)], [t('column.frontend'), term('frontend', call.frontend)],
        [t('column.decision'), call.decision && badge('decision', call.decision)], [t('column.rule'), call.rule],
        [t('column.input'), bytes(call.inputBytes ?? 0)], [t('column.output'), bytes(call.outputBytes ?? 0)], [t('column.trace'), call.traceId && code(call.traceId)],
      ]),
      call.tool && h('p', {}, h('a', { href: `#/tools/${encodeURIComponent(call.tool)}` }, t('calls.tool')), ' ',
        h('a', { href: `#/audit?tool=${encodeURIComponent(call.tool)}` }, t('calls.audit'))),
    ],
  })
}
