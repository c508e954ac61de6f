// Tables whose rows change while they are read: a row that stays keeps its place in the tab order.
import { h, put } from './dom.js'
import { nothing } from './filters.js'
import { language } from './language.js'

/** renew updates an element and replaces only the nodes that differ: replacing a node between press and release would lose the click. */
function renew(element, content) {
  const before = [...element.childNodes]
  const after = [...put(element.cloneNode(false), content).childNodes]
  if (before.length !== after.length) put(element, after)
  else before.forEach((node, i) => node.isEqualNode(after[i]) || node.replaceWith(after[i]))
}

/** buttonColumn is a column with a button in each row that allows it. Its head is for screen readers only. */
export function buttonColumn(label, press, where = () => true) {
  return { label: h('span', { class: 'unseen' }, label), class: 'nowrap',
    cell: row => where(row) && h('button', { type: 'button', class: 'small', onclick: () => press(row) }, label) }
}

/**
 * table makes a table and returns {element, update}. columns are {label, cell(row), class}; the first is the row's header. rowKey tells rows apart.
 * With open, the first cell is a button, reached with Tab once for the table and then with the arrow keys; a click anywhere in the row does the same.
 *
 * A column with a name in by can be sorted by its head: by value(row), else by the row's field of that name, and with down the greatest first. With
 * page, the address has the order. Without rows it shows empty, or, if the filters narrow have excluded all rows, a note about that.
 */
export function table({ caption, columns, rowKey, open, empty, page, narrow }) {
  const body = h('tbody')
  const none = h('div', { class: 'empty', hidden: true })
  const heads = columns.map(column => h('th', { scope: 'col', class: column.class },
    column.by ? h('button', { type: 'button', class: 'sorter', onclick: () => sort(column) }, column.label) : column.label))
  const sheet = h('table', {},
    h('caption', { class: 'unseen' }, caption),
    h('thead', {}, h('tr', {}, heads)),
    body)
  const element = h('div', { class: 'scroll rows loading', 'aria-busy': 'true' }, sheet, none)
  // The head of a table is sticky, unless the table scrolls sideways.
  const sizes = new ResizeObserver(() => element.classList.toggle('slides', sheet.offsetWidth > element.clientWidth))
  sizes.observe(element)
  sizes.observe(sheet)
  const kept = new Map()
  let rows = []
  let why // what none says: whether the filters leave nothing
  let order = page?.query.get('sort') ?? ''

  const sort = ({ by, down }) => {
    const ways = down ? [`-${by}`, by, ''] : [by, `-${by}`, '']
    order = ways[(ways.indexOf(order) + 1) % ways.length] // one that is not among them is the last
    page?.note('sort', order)
    update(rows)
  }
  const sorted = () => {
    const found = columns.find(column => column.by && column.by === order.replace(/^-/, ''))
    columns.forEach((column, i) => {
      if (column !== found) heads[i].removeAttribute('aria-sort')
      else heads[i].setAttribute('aria-sort', order.startsWith('-') ? 'descending' : 'ascending')
    })
    if (!found) return rows
    const { by, value = row => row[by] } = found
    return inOrder(rows, value, order.startsWith('-') ? -1 : 1)
  }
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

  // Two rows may have one key, such as two tokens of one name in the configuration: each is shown.
  const keysOf = list => {
    const seen = new Map()
    return list.map(row => {
      const key = rowKey(row)
      const n = seen.get(key) ?? 0
      seen.set(key, n + 1)
      return n > 0 ? `${key}\u0000${n}` : key
    })
  }

  const update = next => {
    rows = next
    element.classList.remove('loading')
    element.removeAttribute('aria-busy')
    const shown = sorted()
    const names = keysOf(shown)
    const wanted = shown.map((row, i) => {
      const key = names[i]
      if (!kept.has(key)) kept.set(key, make(row))
      const line = kept.get(key)
      write(line, row)
      return line.element
    })
    const keys = new Set(names)
    for (const [key, line] of kept) {
      if (keys.has(key)) continue
      line.element.remove()
      kept.delete(key)
    }
    wanted.forEach((row, i) => {
      if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null)
    })
    sheet.hidden = rows.length === 0
    none.hidden = rows.length > 0
    const narrowed = Boolean(narrow?.narrowed())
    if (why !== narrowed) put(none, narrowed ? nothing(narrow) : empty)
    why = narrowed
    rove()
  }
  return { element, update }
}

/** inOrder sorts rows by a number or a text; rows without one come last. */
function inOrder(rows, value, sign) {
  const { compare } = new Intl.Collator(language, { numeric: true })
  const missing = one => one === undefined || one === null || one === ''
  return rows.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)]
    if (missing(x) || missing(y)) return missing(x) - missing(y)
    return sign * (typeof x === 'number' ? x - y : compare(x, y))
  })
}
