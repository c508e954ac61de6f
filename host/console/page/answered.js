// The history of questions: who asked, who answered what and when, and what came of the call. It is a view of the audit log.
import { h, put, uniqueID } from './dom.js'
import { t, term, who } from './language.js'
import { badge, code, problem, when } from './parts.js'
import { table } from './table.js'
import { showRecord } from './views/audit.js'

const filters = { tool: 'column.tool', user: 'approvals.asker', approver: 'approvals.approver' }

/** answered is the history below the waiting questions. reload reads its first page again. */
export function answered(page) {
  const list = table({
    caption: t('approvals.history'), rowKey: row => row.seq, open: showRecord, empty: t('approvals.noHistory'),
    columns: [
      { label: t('column.time'), class: 'nowrap', cell: row => when(row.time) },
      { label: t('column.tool'), cell: row => [code(row.name), h('small', {}, row.plugin)] },
      { label: t('approvals.asker'), class: 'wide', cell: row => [who(row.who), h('small', {}, row.who?.client || term('frontend', row.who?.frontend))] },
      { label: t('column.approval'), cell: row => row.approval && [badge('answer', row.approval.answer), row.approval.by && h('small', {}, row.approval.by)] },
      { label: t('column.outcome'), cell: row => badge('outcome', row.outcome) },
    ],
  })
  const form = h('form', { class: 'search', onsubmit: event => {
    event.preventDefault()
    load(true)
  } }, Object.entries(filters).map(([name, label]) => {
    const id = uniqueID('history')
    return h('div', { class: 'field' }, h('label', { for: id }, t(label)), h('input', { id, name, type: 'search', maxlength: 200, autocomplete: 'off' }))
  }), h('button', { type: 'submit' }, t('audit.search')))
  const more = h('button', { type: 'button', hidden: true, onclick: () => load(false) }, t('audit.more'))
  const trouble = h('div', { role: 'alert' })
  let rows = []
  let next
  const load = async fresh => {
    const wanted = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ''))
    more.disabled = true
    try {
      const found = await page.get('audit', { asked: 'yes', ...wanted, cursor: fresh ? undefined : next })
      rows = fresh ? found.items : [...rows, ...found.items]
      next = found.next
      list.update(rows)
      more.hidden = !next
      put(trouble)
    } catch (error) {
      if (error.name !== 'AbortError') put(trouble, problem(error))
    }
    more.disabled = false
  }
  const element = h('section', { class: 'history', 'aria-label': t('approvals.history') }, h('h2', {}, t('approvals.history')), form, trouble, list.element, more)
  return { element, reload: () => load(true) }
}
