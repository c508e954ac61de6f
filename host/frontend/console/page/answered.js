// The history of questions: caller, approver, answer, time, and the outcome of the call. It is a view of the audit log.
import { h, put, uniqueID } from './dom.js'
import { t, term, who } from './language.js'
import { badge, code, problem, when } from './parts.js'
import { live } from './server.js'
import { table } from './table.js'
import { showRecord } from './views/audit.js'

const filters = { tool: 'column.tool', user: 'approvals.asker', approver: 'approvals.approver' }

/** answered is the history below the pending questions, the newest call first. A call is added when it ends; calls of other replicas are added later. */
export function answered(page) {
  const list = table({
    caption: t('approvals.history'), rowKey: row => row.seq, open: showRecord, empty: t('approvals.noHistory'),
    columns: [
      { label: t('column.time'), class: 'nowrap', cell: row => when(row.time) },
      { label: t('column.tool'), cell: row => [code(row.name), h('small', {}, row.plugin)] },
      { label: t('approvals.asker'), class: 'wide', cell: row => [who(row.who), h('small', {}, row.who?.client || term('frontend', row.who?.frontend))] },
      { label: t('column.approval'), cell: row => row.approval && [badge('answer', row.approval.answer), row.approval.by && h('small', {}, row.approval.by)] },
      { label: t('column.outcome'), cell: result },
    ],
  })
  let wanted = {}
  let rows = []
  let next
  const form = h('form', { class: 'search', onsubmit: event => {
    event.preventDefault()
    wanted = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''))
    rows = []
    again()
  } }, Object.entries(filters).map(([name, label]) => {
    const id = uniqueID('history')
    return h('div', { class: 'field' }, h('label', { for: id }, t(label)), h('input', { id, name, type: 'search', maxlength: 200, autocomplete: 'off' }))
  }), h('button', { type: 'submit' }, t('audit.search')))
  const more = h('button', { type: 'button', hidden: true, onclick: () => load(next) }, t('audit.more'))
  const trouble = h('div', { role: 'alert' })
  const load = async cursor => {
    const searched = wanted
    more.disabled = true
    try {
      const found = await page.get('audit', { asked: 'yes', ...searched, cursor })
      if (searched === wanted) show(found, cursor)
      put(trouble)
    } catch (error) {
      if (error.name !== 'AbortError') put(trouble, problem(error))
    }
    more.disabled = false
  }
  // The newest page is put before the existing rows if it overlaps with them, else it replaces them.
  const show = (found, cursor) => {
    const fresh = found.items.filter(item => !rows.some(row => row.seq === item.seq))
    const joins = cursor ? cursor === next : rows.length > 0 && fresh.length < found.items.length
    if (cursor && !joins) return
    if (cursor || !joins) next = found.next
    // The log has calls in the order of their ends, and a call may wait long for its approval.
    rows = (joins ? [...rows, ...fresh] : found.items).toSorted((a, b) => Date.parse(b.time) - Date.parse(a.time))
    list.update(rows.filter(row => !repeated(row)))
    more.hidden = !next
  }
  // A client without a session asks with one call and brings the answer with the next: one question, whose last call counts.
  const repeated = row => row.outcome === 'asked' && rows.some(other => other.seq > row.seq && other.approval?.id === row.approval?.id)
  let took = 0
  let soon
  const again = page.poll(300_000, async () => {
    const began = performance.now()
    await load()
    took = performance.now() - began
  })
  // A search may read the whole log, so searches are limited however many calls asked for approval.
  live.addEventListener('call', ({ detail }) => {
    if (detail.decision !== 'ask' || soon) return
    soon = setTimeout(() => {
      soon = undefined
      again()
    }, 10 * took)
  }, { signal: page.signal })
  return h('section', { class: 'history', 'aria-label': t('approvals.history') }, h('h2', {}, t('approvals.history')), form, trouble, list.element, more)
}

/** result is the outcome of a question's call. A call that only asked has none of its own once there is an answer. */
function result({ outcome, approval }) {
  if (outcome !== 'asked' || approval?.answer === 'pending') return badge('outcome', outcome)
  return approval?.answer === 'yes' ? h('small', {}, t('approvals.notRepeated')) : '–'
}
