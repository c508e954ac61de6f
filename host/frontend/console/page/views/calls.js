// Running calls, and below them those that have ended.
import { h, icon, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { number, t, term, who } from '../language.js'
import { badge, code, head, may, took, when } from '../parts.js'
import { live, recent } from '../server.js'
import { stopButton } from '../stop.js'
import { table } from '../table.js'

const most = 200

export default async function calls(page) {
  if (page.path.length > 0) {
    const { default: call } = await import('./call.js')
    if (!page.signal.aborted) call(page, page.path[0])
    return
  }
  let running // of the first answer on
  let earlier = [] // ended before the page was opened
  let held = null // the rows at the moment of pausing
  let missed = 0
  let dropped = 0
  const state = h('p', { class: 'hint', role: 'status' })
  const about = h('p', { class: 'hint' })
  const narrow = filters(page, () => show())
  const text = narrow.search(t('calls.filter'))
  const outcome = narrow.choice('outcome', t('column.outcome'), { '': t('calls.all'), running: t('calls.running'), failed: t('calls.failed'), denied: t('calls.denied') })
  const pause = h('button', { type: 'button', 'aria-pressed': 'false' })
  const list = table({
    caption: t('nav.calls'), rowKey: row => row.id, narrow,
    empty: [h('p', {}, t('calls.empty')), h('p', {}, h('a', { href: '#/tools' }, t('calls.try')))],
    open: row => { location.hash = `#/calls/${encodeURIComponent(row.id)}` },
    columns: [
      { label: t('column.what'), class: 'grow', cell: what },
      { label: t('column.time'), class: 'nowrap wide', cell: row => when(row.time) },
      { label: t('column.who'), class: 'wide', cell: row => who(row) },
      { label: t('column.frontend'), class: 'nowrap wide', cell: row => term('frontend', row.frontend) },
      { label: t('column.outcome'), cell: row => row.elapsedMs === undefined ? badge('outcome', row.outcome) : [progress(row), row.replica && h('small', {}, row.replica)].flat() },
      { label: t('column.took'), class: 'number', cell: row => [took(row.elapsedMs ?? row.durationMs), row.elapsedMs !== undefined && may(page.session, 'admin') && stopButton(row)] },
    ],
  })
  put(page.root, head(t('nav.calls'), state), about,
    h('div', { class: 'tools' }, text, outcome, pause), list.element)

  const rows = () => {
    const ended = new Map([...earlier, ...recent].map(call => [call.id, call]))
    return [...running.items.filter(call => !ended.has(call.id)), ...recent, ...earlier.filter(call => !recent.some(other => other.id === call.id))]
  }
  const show = () => {
    put(pause, held ? [icon('play'), t('calls.resume')] : [icon('pause'), t('calls.pause')])
    pause.setAttribute('aria-pressed', String(held !== null))
    if (!running) return
    list.update((held ?? rows()).filter(call => matches(call, text.value, outcome.value)).slice(0, most))
    const notes = [running.more > 0 && t('calls.more', { n: number(running.more) }), held && t('calls.missed', { n: missed }), dropped > 0 && t('calls.dropped', { n: dropped })]
    put(state, notes.filter(Boolean).join(' '))
    put(about, t('calls.about'), running.replica && ` ${t('calls.others', { replica: running.replica })}`)
  }
  pause.addEventListener('click', () => {
    held = held || !running ? null : rows()
    missed = 0
    show()
  })
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
  page.once(async () => {
    earlier = (await page.get('calls/finished')).items
    show()
  })
  const again = page.poll(1000, async () => {
    running = await page.get('calls/running')
    show()
  })
  live.addEventListener('started', again, { signal: page.signal })
  show()
}

/** what shows the tool, and the visible parts of the arguments and the result. */
function what(row) {
  const given = Object.entries(row.arguments ?? {}).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(', ')
  return [
    code(row.tool || (row.elapsedMs === undefined ? t('calls.unknown') : row.method)), row.tool && row.method !== 'tools/call' && h('small', {}, row.method), row.parent && h('small', {}, t('call.byTool')),
    given && h('small', { class: 'clamped' }, given), row.text && h('small', { class: 'clamped' }, `→ ${row.text}`),
  ]
}

/** progress shows the state of a running call: what it waits for, or its progress. */
function progress(row) {
  if (row.question) return h('a', { class: 'badge warn', href: `#/approvals/${encodeURIComponent(row.question)}` }, t('calls.waits'))
  return [
    badge('outcome', 'running'),
    row.progress?.share !== undefined && h('progress', { value: row.progress.share, 'aria-label': t('calls.progress') }),
    h('small', {}, row.progress?.message || term('step', row.step)),
  ]
}

function matches(call, text, outcome) {
  if (outcome === 'running' && call.elapsedMs === undefined) return false
  if (outcome === 'failed' && !call.failed) return false
  if (outcome === 'denied' && call.outcome !== 'not_allowed') return false
  return has(text, call.id, call.tool, call.plugin, call.user, call.tenant, call.frontend, call.outcome, call.rule, call.method)
}
