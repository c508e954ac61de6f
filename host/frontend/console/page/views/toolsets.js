// Toolsets: their tools, tokens and callers, and a draft of one as lines for hako.yaml. Nothing is written here.
import { h, put } from '../dom.js'
import { labelled } from '../field.js'
import { filters, has } from '../filters.js'
import { number, t, term } from '../language.js'
import { card, code, copyText, facts, guarded, head, may, problem } from '../parts.js'
import { live, post, segment } from '../server.js'
import { table } from '../table.js'

/** everything is the name for the whole catalog, which callers without a set are offered. */
const everything = 'all'
/** pause is the delay between the last keystroke and the request, in milliseconds. */
const pause = 300
const people = ['users', 'groups', 'tenants', 'tokens']
const conditions = ['frontends', 'channels', ...people]
const frontends = ['mcp-http', 'mcp-stdio', 'slack', 'terminal', 'agent', 'console']

export default function toolsets(page) {
  if (page.query.has('draft')) draft(page, page.query.get('draft'))
  else if (page.query.has('rules')) draftRules(page)
  else if (page.path.length > 0) one(page, page.path[0])
  else all(page)
}

const endpoint = name => code(name === everything ? '/mcp' : `/mcp/${name}`)
const link = (session, query, label) => guarded(session, 'admin', h('button', { type: 'button', onclick: () => { location.hash = `#/toolsets?${query}` } }, label))
const draftLink = (session, name, label) => link(session, `draft=${segment(name)}`, label)

function all(page) {
  const limits = h('p', { class: 'hint' })
  const narrow = filters(page, () => show())
  const text = narrow.search(t('toolsets.filter'))
  const list = table({
    caption: t('nav.toolsets'), rowKey: row => row.name, page, narrow, empty: '–', open: row => { location.hash = `#/toolsets/${segment(row.name)}` },
    columns: [
      { label: t('toolsets.set'), by: 'name', cell: row => [h('strong', {}, row.name), h('small', {}, row.description ?? ''),
        row.problems.length > 0 && h('small', { class: 'warning' }, t('toolsets.problems', { n: row.problems.length }))] },
      { label: t('toolsets.endpoint'), class: 'wide', cell: row => endpoint(row.name) },
      { label: t('column.tools'), by: 'tools', down: true, class: 'number', cell: row => [number(row.tools), row.search && h('small', {}, t('toolsets.listed', { n: number(row.listed) }))] },
      { label: t('toolsets.tokens'), by: 'tokens', down: true, class: 'number', cell: row => [number(row.tokens), row.search && h('small', {}, t('toolsets.listed', { n: number(row.listedTokens) }))] },
      { label: t('toolsets.offeredTo'), class: 'wide', cell: row => row.to.length ? h('ul', { class: 'terms' }, row.to.map(text => h('li', {}, text))) : t('toolsets.endpointOnly') },
    ],
  })
  const order = table({
    caption: t('toolsets.rules'), rowKey: row => row.n, empty: t('toolsets.noRules'),
    columns: [
      { label: t('column.rule'), class: 'nowrap', cell: row => number(row.n) },
      { label: t('policy.matches'), class: 'grow', cell: matched },
      { label: t('toolsets.set'), cell: row => h('a', { href: `#/toolsets/${segment(row.toolset)}` }, row.toolset) },
    ],
  })
  put(page.root, head(t('nav.toolsets'), draftLink(page.session, '', t('toolsets.new'))), h('p', { class: 'hint' }, t('toolsets.about')), h('div', { class: 'tools' }, text), list.element,
    h('p', { class: 'hint' }, t('toolsets.tokensAbout')), limits, card(t('toolsets.rules'), h('p', { class: 'hint' }, t('toolsets.rulesAbout')), order.element, h('div', { class: 'actions' }, link(page.session, 'rules=', t('toolsets.rulesChange')))))
  let rows
  const show = () => rows && list.update(rows.filter(row => has(text.value, row.name, row.description ?? '', row.to)))
  const again = page.poll(60_000, async () => {
    const [now, sets] = await Promise.all([page.get('toolsets', { limit: 1 }), page.pages('toolsets')])
    rows = [{ ...now.catalog, name: everything, description: t('toolsets.everything'), problems: [] }, ...sets].map(row => ({ ...row, to: offeredTo(row.name, now) }))
    show()
    order.update(now.rules.map((rule, i) => ({ n: i + 1, ...rule })))
    put(limits, searchLimits(now.search))
  })
  live.addEventListener('plugins', again, { signal: page.signal })
}

/** offeredTo summarizes the callers of a set. */
function offeredTo(name, { rules, local }) {
  const said = rules.flatMap((rule, i) => rule.toolset === name ? [t('toolsets.byRule', { n: i + 1 })] : [])
  if (local === name) said.push(t('toolsets.local'))
  if (name === everything) said.push(t('toolsets.others'))
  return said
}

function searchLimits({ tools, tokens }) {
  if (!tools && !tokens) return t('toolsets.searchOff')
  return [tools && t('toolsets.aboveTools', { n: number(tools) }), tokens && t('toolsets.aboveTokens', { n: number(tokens) })].filter(Boolean).join(' ')
}

/** matched lists the callers that a rule matches, or that may use an endpoint. */
function matched(row) {
  const fields = conditions.filter(name => row[name]?.length)
  if (fields.length === 0) return t('toolsets.everyone')
  return h('ul', { class: 'terms' }, fields.map(name => h('li', {}, h('span', { class: 'soft' }, `${t(`toolsets.field.${name}`)}: `),
    row[name].map((value, i) => [i > 0 && ', ', name === 'frontends' ? term('frontend', value) : code(value)]))))
}

const argumentList = row => [
  row.fixed?.map(({ name, value }) => h('small', {}, t('toolsets.fixed'), ' ', code(value ? `${name} = ${value}` : name))),
  row.hidden?.map(name => h('small', {}, t('toolsets.hidden'), ' ', code(name))),
]

function toolTable(more) {
  return table({
    ...more, caption: t('column.tools'), rowKey: row => row.name, empty: t('toolsets.empty'),
    columns: [
      { label: t('toolsets.offeredName'), by: more && 'name', cell: row => [code(row.name), row.pinned && h('span', { class: 'badge plain' }, t('toolsets.pinned')), h('small', { class: more && 'narrow' }, argumentList(row))] },
      { label: t('toolsets.inCatalog'), by: more && 'tool', cell: row => [h('a', { href: `#/tools/${segment(row.tool)}` }, code(row.tool)), h('small', {}, row.plugin)] },
      ...more ? [{ label: t('toolsets.arguments'), class: 'wide', cell: argumentList }] : [],
      { label: t('toolsets.tokens'), by: more && 'tokens', down: true, class: 'number', cell: row => number(row.tokens) },
    ],
  })
}

/** costs shows the number of tools and tokens that a model is offered. */
function costs(set) {
  return [
    [t('column.tools'), number(set.tools)], [t('toolsets.tokens'), t('toolsets.nearly', { n: number(set.tokens) })],
    [t('toolsets.search'), set.search && t('toolsets.searched', { tools: number(set.listed), tokens: number(set.listedTokens) })],
    [t('toolsets.resources'), number(set.resources)], [t('toolsets.prompts'), number(set.prompts)],
  ]
}

const unmatched = problems => problems.length > 0 && h('div', { class: 'notice' }, h('p', {}, t('toolsets.unmatched')), h('ul', { class: 'lines' }, problems.map(text => h('li', {}, text))))

function one(page, name) {
  const about = h('div', { class: 'stack' })
  const narrow = filters(page, () => show())
  const text = narrow.search(t('tools.filter'))
  const list = toolTable({ page, narrow })
  let tools
  const show = () => tools && list.update(tools.filter(row => has(text.value, row.name, row.tool, row.plugin)))
  const title = name === everything ? t('toolsets.everything') : code(name)
  put(page.root, h('p', { class: 'back' }, h('a', { href: '#/toolsets' }, t('nav.toolsets'))),
    head(title, name !== everything && draftLink(page.session, name, t('toolsets.change'))), about, h('div', { class: 'tools' }, text), list.element)
  const again = page.poll(60_000, async () => {
    const path = `toolsets/${segment(name)}`
    const [set, sets] = await Promise.all([page.get(path, { limit: 1 }), page.get('toolsets', { limit: 1 })])
    tools = await page.pages(path, {}, 5000)
    put(about, set.description && h('p', { class: 'lead' }, set.description), unmatched(set.problems),
      card(t('toolsets.offers'), facts([
        [t('toolsets.endpoint'), endpoint(name)], [t('toolsets.who'), name !== everything && matched(set.for ?? {})],
        [t('toolsets.offeredTo'), offeredTo(name, sets).join(', ') || t('toolsets.endpointOnly')], ...costs(set),
      ])))
    show()
  })
  live.addEventListener('plugins', again, { signal: page.signal })
}

const line = (value, more) => h('input', { type: 'text', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', value: value ?? '', ...more })
const words = control => control.value.split(',').map(word => word.trim()).filter(Boolean)
const joined = values => (values ?? []).join(', ')

function check(value) {
  const control = h('input', { type: 'checkbox' })
  control.checked = value === true
  return control
}

const field = (name, control, description, more) => labelled({ schema: { description }, name }, control, more).element

/** entryForm is the form for one entry of a set. read throws an error that problem shows. */
function entryForm(entry, remove) {
  const tool = line(entry.tool, { list: 'toolset-tools' })
  const rename = line(entry.rename)
  const fix = line(entry.fix && JSON.stringify(entry.fix), { placeholder: '{"path": "a.md"}' })
  const hide = line(joined(entry.hide))
  const [en, ja] = [line(entry.description?.en), line(entry.description?.ja)]
  const [short, pin] = [check(entry.short), check(entry.pin)]
  const more = h('details', {}, h('summary', {}, t('toolsets.more')), h('div', { class: 'fields' }, h('div', {},
    field(t('toolsets.rename'), rename), field(t('toolsets.fix'), fix), field(t('toolsets.hide'), hide, t('toolsets.commas')),
    field(t('toolsets.toolText', { language: 'English' }), en), field(t('toolsets.toolText', { language: '日本語' }), ja),
    field(t('toolsets.short'), short, '', { beside: true }), field(t('toolsets.pin'), pin, '', { beside: true }))))
  more.open = Object.keys(entry).length > 1
  return {
    element: h('fieldset', {}, h('legend', {}, t('column.tool')), field(t('toolsets.pattern'), tool), more,
      h('button', { type: 'button', class: 'small', onclick: remove }, t('form.remove'))),
    focus: () => tool.focus(),
    read() {
      const read = { tool: tool.value.trim(), rename: rename.value.trim(), hide: words(hide), short: short.checked, pin: pin.checked }
      const description = Object.fromEntries([['en', en], ['ja', ja]].map(([name, control]) => [name, control.value.trim()]).filter(([, text]) => text))
      return { ...read, ...fix.value.trim() && { fix: object(fix.value) }, ...Object.keys(description).length && { description } }
    },
  }
}

/** object reads fixed arguments. */
function object(text) {
  const wrong = message => Object.assign(new Error(message), { status: 0 })
  let value
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw wrong(t('form.notJSON', { error: error.message }))
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw wrong(t('form.notObject'))
  return value
}

/** mayDraft makes the head of a draft page, which is for admins. */
function mayDraft(page, title) {
  put(page.root, h('p', { class: 'back' }, h('a', { href: '#/toolsets' }, t('nav.toolsets'))), head(title))
  if (may(page.session, 'admin')) return true
  page.root.append(problem({ role: 'admin' }))
  return false
}

/** asking has the server check a draft while it is edited, and shows its response in result. read returns the body to post to path, or nothing yet. */
function asking(page, path, { read, begin, show, result }) {
  let timer, asked = 0
  const ask = async () => {
    const turn = ++asked
    try {
      const wanted = read()
      if (!wanted) return put(result, h('p', { class: 'hint' }, begin))
      const seen = await post(path, wanted, page.signal)
      if (turn === asked) put(result, show(seen))
    } catch (error) {
      if (error.name !== 'AbortError' && turn === asked) put(result, refused(error))
    }
  }
  page.signal.addEventListener('abort', () => clearTimeout(timer))
  const soon = () => {
    clearTimeout(timer)
    timer = setTimeout(ask, pause)
  }
  const form = { novalidate: true, oninput: soon, onsubmit: event => {
    event.preventDefault()
    ask()
  } }
  return { ask, soon, form }
}

/** draft is the form for a set, with a preview of its tools. from names the set to start from. */
function draft(page, from) {
  if (!mayDraft(page, t('toolsets.draft'))) return
  const begin = set => drafting(page, set)
  if (!from) return begin({ name: '', tools: [{ tool: '' }] })
  page.once(async () => {
    const { set } = await page.get(`toolsets/${segment(from)}`, { limit: 1 })
    begin(set ?? { name: '', tools: [{ tool: '*' }] })
  })
}

function drafting(page, set) {
  const known = h('datalist', { id: 'toolset-tools' })
  page.pages('tools').then(list => put(known, list.map(({ name }) => h('option', { value: name }))), () => {})
  const controls = Object.fromEntries(['name', 'description'].map(key => [key, line(set[key])]))
  const lists = Object.fromEntries(['except', 'resources', 'prompts'].map(key => [key, line(joined(set[key]))]))
  const who = Object.fromEntries(people.map(key => [key, line(joined(set.for?.[key]))]))
  const rows = h('div', { class: 'items' })
  const result = h('div', { class: 'result', 'aria-live': 'polite' })
  let entries = []
  const add = entry => {
    const made = entryForm(entry, () => {
      entries = entries.filter(other => other !== made)
      made.element.remove()
      more.focus()
      soon()
    })
    entries.push(made)
    rows.append(made.element)
    return made
  }
  const more = h('button', { type: 'button', onclick: () => {
    add({ tool: '' }).focus()
    soon()
  } }, t('toolsets.add'))
  const read = () => {
    const values = (from, key) => words(from[key])
    const wanted = {
      name: controls.name.value.trim(), description: controls.description.value.trim(), tools: entries.map(entry => entry.read()).filter(entry => entry.tool),
      ...Object.fromEntries(Object.keys(lists).map(key => [key, values(lists, key)])), for: Object.fromEntries(people.map(key => [key, values(who, key)])),
    }
    return wanted.name && wanted.tools.length > 0 && wanted
  }
  const { ask, soon, form: asks } = asking(page, 'toolsets/preview', { read, begin: t('toolsets.begin'), show: preview, result })
  const form = h('form', asks,
  known, field(t('toolsets.name'), controls.name, t('toolsets.nameAbout')), field(t('toolsets.description'), controls.description),
  h('h3', {}, t('toolsets.entries')), h('p', { class: 'hint' }, t('toolsets.entriesAbout')), rows, h('div', { class: 'actions' }, more),
  Object.entries(lists).map(([key, control]) => field(t(`toolsets.${key}`), control, t('toolsets.commas'))),
  h('details', {}, h('summary', {}, t('toolsets.who')), h('div', { class: 'fields' }, h('div', {}, people.map(key => field(t(`toolsets.field.${key}`), who[key], t('toolsets.commas')))))))
  set.tools?.forEach(add)
  page.root.append(h('p', { class: 'lead' }, t('toolsets.draftAbout')), h('div', { class: 'pair' }, card(t('toolsets.form'), form), result))
  ask()
}

/** ruleForm is the form for one rule. move removes it, or moves it up or down by -1 or 1. */
function ruleForm(rule, move) {
  const toolset = line(rule.toolset, { list: 'toolset-names' })
  const controls = Object.fromEntries(conditions.map(name => [name, line(joined(rule[name]), name === 'frontends' && { list: 'toolset-frontends' })]))
  const button = (label, by) => h('button', { type: 'button', class: 'small', onclick: () => move(by) }, label)
  const legend = h('legend')
  return {
    element: h('fieldset', {}, legend, field(t('toolsets.set'), toolset), conditions.map(name => field(t(`toolsets.field.${name}`), controls[name])),
      h('p', { class: 'row' }, button(t('toolsets.up'), -1), button(t('toolsets.down'), 1), button(t('form.remove')))),
    number(n) {
      put(legend, `${t('column.rule')} ${number(n)}`)
    },
    focus: () => toolset.focus(),
    read: () => ({ ...Object.fromEntries(conditions.map(name => [name, words(controls[name])])), toolset: toolset.value.trim() }),
  }
}

/** draftRules is the form for the rules, with their problems and the lines for hako.yaml beside it. */
function draftRules(page) {
  if (!mayDraft(page, t('toolsets.rulesDraft'))) return
  page.get('toolsets', { limit: 1 }).then(({ rules }) => draftingRules(page, rules)).catch(error => error.name === 'AbortError' || page.failed(error))
}

function draftingRules(page, rules) {
  const options = names => names.map(value => h('option', { value }))
  const sets = h('datalist', { id: 'toolset-names' }, options([everything]))
  page.pages('toolsets').then(list => put(sets, options([everything, ...list.map(({ name }) => name)])), () => {})
  const rows = h('div', { class: 'items' })
  const result = h('div', { class: 'result', 'aria-live': 'polite' })
  let list = []
  const show = () => {
    list.forEach((form, i) => form.number(i + 1))
    soon()
  }
  const add = rule => {
    const made = ruleForm(rule, by => {
      const at = list.indexOf(made), to = at + by
      if (by && !list[to]) return
      if (by) {
        [list[at], list[to]] = [list[to], list[at]]
        if (by < 0) list[to + 1].element.before(made.element)
        else list[to - 1].element.after(made.element)
        made.focus()
      } else {
        list.splice(at, 1)
        made.element.remove()
        more.focus()
      }
      show()
    })
    list.push(made)
    rows.append(made.element)
    return made
  }
  const more = h('button', { type: 'button', onclick: () => {
    add({}).focus()
    show()
  } }, t('toolsets.rulesAdd'))
  const read = () => list.length > 0 && { rules: list.map(form => form.read()) }
  const { ask, soon, form } = asking(page, 'toolsets/rules/preview', { read, begin: t('toolsets.rulesBegin'), show: rulesPreview, result })
  page.root.append(h('p', { class: 'lead' }, t('toolsets.draftAbout')), h('div', { class: 'pair' },
    card(t('toolsets.rules'), h('form', form, sets, h('datalist', { id: 'toolset-frontends' }, options(frontends)), h('p', { class: 'hint' }, t('toolsets.conditionsAbout')), rows,
      h('div', { class: 'actions' }, more))), result))
  rules.forEach(add)
  show()
  ask()
}

const rulesPreview = seen => [
  lines(seen, t('toolsets.rulesYAMLAbout')),
  seen.unreachable.length > 0 && h('div', { class: 'notice' }, h('ul', { class: 'lines' }, seen.unreachable.map(({ rule, by }) => h('li', {}, t('toolsets.unreachable', { rule: number(rule), by: number(by) }))))),
]

/** refused shows the errors of a draft at their fields, or the server's error. */
function refused(error) {
  const labels = key => {
    const [name, at] = key.split('.')
    if (at !== undefined) return `${t(name === 'rules' ? 'column.rule' : 'column.tool')} ${Number(at) + 1}`
    return t(people.includes(name) ? `toolsets.field.${name}` : name === 'tools' ? 'toolsets.entries' : `toolsets.${name}`)
  }
  return [problem(error), error.fields && h('ul', { class: 'lines' }, Object.entries(error.fields).map(([key, text]) => h('li', {}, h('strong', {}, labels(key)), ' ', text)))]
}

/** lines shows the lines for hako.yaml, and their difference to the configuration. */
function lines(seen, about) {
  const told = h('span', { role: 'status' })
  const copy = h('button', { type: 'button', class: 'small', async onclick() { put(told, await copyText(seen.yaml)) } }, t('copy'))
  return [
    h('h2', {}, t('toolsets.yaml')), h('p', { class: 'hint' }, about), h('pre', { tabindex: 0, 'aria-label': t('toolsets.yaml') }, seen.yaml), h('p', { class: 'row' }, copy, told),
    seen.current && [h('h3', {}, t('toolsets.difference')),
      seen.current === seen.yaml ? h('p', { class: 'hint' }, t('toolsets.same')) : h('pre', { class: 'diff', tabindex: 0, 'aria-label': t('toolsets.difference') }, difference(seen.current, seen.yaml))],
  ]
}

function preview(seen) {
  const list = toolTable()
  list.update(seen.items)
  return [
    lines(seen, t('toolsets.yamlAbout')), h('h2', {}, t('toolsets.wouldOffer')), unmatched(seen.problems), facts(costs(seen)), list.element, seen.more > 0 && h('p', { class: 'hint' }, t('toolsets.moreTools', { n: number(seen.more) })),
  ]
}

/** difference marks the lines between those that both texts begin and end with. */
function difference(before, after) {
  const [old, next] = [before, after].map(text => text.trimEnd().split('\n'))
  const same = (a, b) => {
    const n = a.findIndex((text, i) => text !== b[i])
    return n < 0 ? Math.min(a.length, b.length) : n
  }
  const start = same(old, next)
  const end = Math.min(same(old.toReversed(), next.toReversed()), Math.min(old.length, next.length) - start)
  const marked = (kind, mark, lines) => lines.map(text => h(kind, {}, `${mark} ${text}`))
  return [
    marked('span', ' ', old.slice(0, start)), marked('del', '-', old.slice(start, old.length - end)), marked('ins', '+', next.slice(start, next.length - end)),
    marked('span', ' ', old.slice(old.length - end)),
  ]
}
