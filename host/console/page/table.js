// Tables whose rows come and go while somebody reads them: a row that stays keeps its place in the keyboard's way.
import { h, put } from './dom.js'

/** renew puts content into an element and replaces only the nodes that differ: one that is replaced between the press and the release of a click takes the click along. */
function renew(element, content) {
  const before = [...element.childNodes]
  const after = [...put(element.cloneNode(false), content).childNodes]
  if (before.length !== after.length) put(element, after)
  else before.forEach((node, i) => node.isEqualNode(after[i]) || node.replaceWith(after[i]))
}

/**
 * table makes a table and returns {element, update}. columns are {label, cell(row), class}; the first is the row's header. rowKey tells rows apart.
 * With open, the first cell is a button, reached with Tab once for the table and then with the arrow keys; a click anywhere in the row does the same.
 */
export function table({ caption, columns, rowKey, open, empty }) {
  const body = h('tbody')
  const nothing = h('p', { class: 'empty' }, empty)
  const sheet = h('table', {},
    h('caption', { class: 'unseen' }, caption),
    h('thead', {}, h('tr', {}, columns.map(column => h('th', { scope: 'col', class: column.class }, column.label)))),
    body)
  const element = h('div', { class: 'scroll' }, sheet, nothing)
  const kept = new Map()

  const make = row => {
    const cells = columns.map((column, i) => h(i ? 'td' : 'th', { class: column.class, scope: i ? null : 'row' }))
    const line = { element: h('tr', { class: open && 'opens' }, cells), cells, row: undefined, shown: '' }
    if (open) {
      line.button = h('button', { type: 'button', class: 'opener', tabindex: -1, onclick: () => open(line.row) })
      cells[0].append(line.button)
      line.element.addEventListener('click', event => {
        if (!event.target.closest('a, button, input') && String(getSelection()) === '') open(line.row)
      })
    }
    return line
  }
  const write = (line, row) => {
    const text = JSON.stringify(row)
    line.row = row
    if (text === line.shown) return
    line.shown = text
    columns.forEach((column, i) => {
      renew(i === 0 && line.button ? line.button : line.cells[i], column.cell(row))
    })
  }
  const rove = () => {
    const buttons = body.querySelectorAll('.opener')
    if (buttons.length && !body.querySelector('.opener[tabindex="0"]')) buttons[0].tabIndex = 0
  }
  body.addEventListener('focusin', event => {
    if (!event.target.matches('.opener')) return
    body.querySelectorAll('.opener[tabindex="0"]').forEach(button => { button.tabIndex = -1 })
    event.target.tabIndex = 0
  })
  body.addEventListener('keydown', event => {
    if (!event.target.matches('.opener')) return
    const buttons = [...body.querySelectorAll('.opener')]
    const at = buttons.indexOf(event.target)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key]
    if (to === undefined || !buttons[to]) return
    event.preventDefault()
    buttons[to].focus()
  })

  const update = rows => {
    const wanted = rows.map(row => {
      const key = rowKey(row)
      if (!kept.has(key)) kept.set(key, make(row))
      const line = kept.get(key)
      write(line, row)
      return line.element
    })
    const keys = new Set(rows.map(rowKey))
    for (const [key, line] of kept) {
      if (keys.has(key)) continue
      line.element.remove()
      kept.delete(key)
    }
    wanted.forEach((row, i) => {
      if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null)
    })
    sheet.hidden = rows.length === 0
    nothing.hidden = rows.length > 0
    rove()
  }
  return { element, update }
}
