// One call: its caller, its outcome, and its steps on a time axis.
import { h, put, svg } from '../dom.js'
import { bytes, t, term, who } from '../language.js'
import { badge, callLink, card, code, copyable, facts, guarded, head, listing, ruleLink, took, when, why } from '../parts.js'
import { live, segment } from '../server.js'
import { stopButton } from '../stop.js'

export default function call(page, id) {
  let ended = false
  const again = page.poll(1000, async () => {
    if (ended) return
    const found = await page.get(`calls/${segment(id)}`)
    ended = !found.running
    show(page, found)
  })
  live.addEventListener('call', event => event.detail.id === id && again(), { signal: page.signal })
  put(page.root, head(code(id)))
}

let stop // of the call that is shown, so that it stays when the rest is drawn again

function show(page, call) {
  const { running, record } = call
  const name = running ? running.tool : record.name
  if (running && stop?.id !== call.id) stop = { id: call.id, button: guarded(page.session, 'admin', stopButton(running)) }
  const top = page.root.querySelector('.head')
  const beside = top.querySelector('.beside')
  const parts = running ? [running.question ? waits(running) : badge('outcome', 'running'), stop.button].flat() : [badge('outcome', record.outcome)]
  if (!same(beside, parts)) put(beside, parts)
  put(top.querySelector('h1'), code(name || (running ?? record).method || term('type', record?.type)))
  const body = h('div', { class: 'stack' },
    call.text && h('div', { class: 'problem' }, h('p', {}, call.text), record?.error && record.error !== record.outcome && h('p', {}, code(record.error)), h('p', {}, call.remedy)),
    !call.text && record?.error && record.error !== record.outcome && h('p', { class: 'notice' }, record.error),
    running ? aboutRunning(call.id, running) : about(call.id, record),
    steps(call, running?.elapsedMs ?? record.durationMs ?? 0),
    call.log.length > 0 && card(t('call.log'), listing(call.log.map(line => `${took(line.timeMs).padStart(8)}  ${line.level.padEnd(5)}  ${line.text}`).join('\n'), t('call.log')),
      call.droppedLines > 0 && h('p', { class: 'hint' }, t('call.droppedLines', { n: call.droppedLines }))),
    values(running?.arguments ?? record?.fields, record?.summary))
  page.root.querySelector('.stack')?.remove()
  page.root.append(body)
}

function same(element, parts) {
  return element.isEqualNode(put(element.cloneNode(false), parts.map(part => part.cloneNode(true))))
}

function waits({ question }) {
  return h('a', { class: 'badge warn', href: `#/approvals/${encodeURIComponent(question)}` }, t('calls.waits'))
}

function columns(pairs) {
  const list = facts(pairs)
  list.classList.add('columns')
  return list
}

const plugin = name => name && h('a', { href: `#/plugins/${encodeURIComponent(name)}` }, name)

function aboutRunning(id, call) {
  return card(t('call.about'), columns([
    [t('column.time'), when(call.time)], [t('column.took'), took(call.elapsedMs)],
    [t('calls.progress'), call.progress && [call.progress.share !== undefined && h('progress', { value: call.progress.share, 'aria-label': t('calls.progress') }), ' ', call.progress.message]],
    [t('column.plugin'), plugin(call.plugin)], [t('column.who'), who(call)], [t('column.frontend'), term('frontend', call.frontend)], [t('column.client'), call.client],
    [t('column.replica'), call.replica], [t('call.id'), copyable(id)], [t('call.parent'), callLink(call.parent)], [t('column.trace'), copyable(call.traceId)],
  ]))
}

function about(id, record) {
  const { who: caller } = record
  return card(t('call.about'), columns([
    [t('column.time'), when(record.time)], [t('column.took'), took(record.durationMs)], [t('column.method'), term('type', record.type)], [t('column.plugin'), plugin(record.plugin)],
    [t('column.who'), who(caller)], [t('column.frontend'), caller.frontend && term('frontend', caller.frontend)], [t('column.client'), caller.client],
    [t('column.address'), caller.address], [t('column.session'), copyable(caller.session)],
    [t('column.decision'), record.decision && [badge('decision', record.decision), ' ', ruleLink(record.rule), ' ', why(record)]],
    [t('column.approval'), record.approval && [badge('answer', record.approval.answer), ' ', record.approval.by ?? '']],
    [t('call.id'), copyable(id)], [t('call.parent'), callLink(record.parent)], [t('call.request'), copyable(record.requestId)],
    [t('call.httpRequest'), copyable(record.httpRequestId)], [t('column.trace'), copyable(record.traceId)],
  ]), record.name && h('p', { class: 'hint' }, h('a', { href: `#/tools/${encodeURIComponent(record.name)}` }, t('calls.tool')), ' · ',
    h('a', { href: `#/audit?text=${encodeURIComponent(id)}` }, t('calls.audit'))))
}

/** steps draws each step as a bar on the time of the whole call. */
function steps(call, total) {
  if (!call.kept) return card(t('call.steps'), h('p', { class: 'hint' }, t('call.notKept')))
  if (call.steps.length === 0) return card(t('call.steps'), h('p', { class: 'hint' }, t('call.noSteps')))
  const share = value => total > 0 ? Math.max(0, Math.min(1000, value / total * 1000)) : 0
  return card(t('call.steps'), h('div', { class: 'scroll' }, h('table', { class: 'steps' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('call.step')), h('th', { scope: 'col', class: 'timeline' }, h('div', {}, h('span', {}, '0'), h('span', {}, took(total)))),
      h('th', { scope: 'col', class: 'number wide' }, t('call.after')), h('th', { scope: 'col', class: 'number' }, t('column.took')))),
    h('tbody', {}, call.steps.map(step => h('tr', {},
      h('th', { scope: 'row', class: `depth-${Math.min(step.depth, 4)}` }, term('step', step.name), ' ', step.failure && h('span', { class: 'badge bad' }, term('outcome', step.failure)), detail(step)),
      h('td', { class: 'timeline' }, svg('svg', { class: step.failure ? 'extent tone-failures' : step.running ? 'extent tone-p50' : 'extent tone-calls', viewBox: '0 0 1000 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        svg('rect', { x: Math.min(995, share(step.startMs)), y: 0, width: Math.max(5, share(step.durationMs)), height: 10 }))),
      h('td', { class: 'number wide' }, took(step.startMs)), h('td', { class: 'number' }, took(step.durationMs))))))),
  call.droppedSteps > 0 && h('p', { class: 'hint' }, t('call.droppedSteps', { n: call.droppedSteps })))
}

const formats = {
  'hako.policy.action': value => term('decision', value), 'hako.rule': value => `${t('column.rule')}: ${value}`, 'hako.outcome': value => term('outcome', term('answer', value)),
  'hako.plugin': value => value, 'server.address': value => value, 'hako.program': value => value, 'http.response.status_code': value => `HTTP ${value}`,
  'http.request.resend_count': value => value > 0 && t('call.retries', { n: value }), 'hako.output.bytes': value => bytes(value), 'hako.http.source': value => value,
  'hako.approval.id': value => value, 'hako.call.id': callLink,
}

/** detail lists the known attributes of a step, in the order above. */
function detail({ attributes = {} }) {
  const known = Object.entries(formats).map(([key, format]) => key in attributes && format(attributes[key])).filter(Boolean)
  return known.length > 0 && h('small', {}, known.flatMap((part, i) => i > 0 ? [' · ', part] : [part]))
}

/** values shows the recorded parts of the arguments and the result. */
function values(fields, summary) {
  const shown = fields && Object.keys(fields).length > 0
  return card(t('call.values'),
    shown && facts(Object.entries(fields).map(([name, value]) => [code(name), typeof value === 'string' ? value : JSON.stringify(value)])),
    summary?.text && listing(summary.text, t('column.output')),
    summary && h('p', { class: 'hint' }, `${t('column.output')}: ${summary.kind}, ${bytes(summary.bytes)}`),
    !(shown && summary?.text) && h('p', { class: 'hint' }, t('call.hidden')))
}
