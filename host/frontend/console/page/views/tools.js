// Tools: their statistics, their schemas, and a form to try them.
import { callsSeries, chart, latencySeries, sparkline } from '../chart.js'
import { h, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { json, milliseconds, number, percent, rate, t } from '../language.js'
import { badge, card, code, facts, guarded, head, listing, may, panel, problem, took } from '../parts.js'
import { questionCard } from '../question.js'
import { resultView } from '../result.js'
import { jsonForm, schemaForm } from '../schema-form.js'
import { live, post, segment } from '../server.js'
import { spanned } from '../span.js'
import { table } from '../table.js'

export default function tools(page) {
  if (page.path.length > 0) one(page, page.path[0])
  else all(page)
}

function all(page) {
  const narrow = filters(page, () => show())
  const text = narrow.search(t('tools.filter'))
  const list = table({
    caption: t('nav.tools'), rowKey: row => row.name, page, narrow, empty: [h('p', {}, t('tools.empty')), h('p', {}, h('a', { href: '#/plugins' }, t('nav.plugins')))],
    open: row => { location.hash = `#/tools/${segment(row.name)}` },
    columns: [
      { label: t('column.tool'), by: 'name', cell: row => [code(row.name), h('small', {}, row.title ?? '')] },
      { label: t('column.plugin'), by: 'plugin', class: 'wide', cell: row => row.plugin },
      { label: t('column.hints'), class: 'wide', cell: hints },
      { label: t('column.calls'), by: 'calls', down: true, class: 'number', cell: row => number(row.calls) },
      { label: t('column.failed'), by: 'failed', value: row => row.calls ? row.failures / row.calls : null, down: true, class: 'number', cell: row => row.calls ? percent(row.failures / row.calls) : '–' },
      { label: 'p95', by: 'p95', value: row => row.calls ? row.p95Ms : null, down: true, class: 'number', cell: row => row.calls ? took(row.p95Ms) : '–' },
      { label: t('column.course'), class: 'wide', cell: row => row.spark && sparkline(row.spark, 'tone-calls') },
    ],
  })
  let tools
  let figures = new Map()
  const show = () => {
    if (!tools) return
    const rows = tools.map(item => ({ calls: 0, ...figures.get(item.name), ...item }))
    list.update(rows.filter(row => has(text.value, row.name, row.title, row.plugin)).toSorted((a, b) => a.name.localeCompare(b.name)))
  }
  const span = spanned(page, async span => {
    const top = await page.get('series/top', { span, by: 'calls', limit: 200 })
    figures = new Map(top.items.map(item => [item.tool, item]))
    show()
    return top
  })
  put(page.root, head(t('nav.tools'), span), h('div', { class: 'tools' }, text), list.element)
  const again = page.poll(15_000, async () => {
    tools = await page.pages('tools')
    show()
  })
  live.addEventListener('plugins', again, { signal: page.signal })
}

function hints(tool) {
  return [
    tool.readOnly && h('span', { class: 'badge plain' }, t('hint.readOnly')),
    tool.destructive && !tool.readOnly && h('span', { class: 'badge warn' }, t('hint.destructive')),
    tool.openWorld && h('span', { class: 'badge plain' }, t('hint.openWorld')),
  ]
}

function one(page, name) {
  const calls = chart({ title: t('chart.calls'), format: rate, stacked: true, tool: name })
  const latency = chart({ title: t('chart.latency'), format: milliseconds, tool: name })
  const charts = h('div', { class: 'pair' }, panel(calls.element), panel(latency.element))
  const quiet = h('p', { class: 'hint', hidden: true }, t('overview.quiet'))
  put(page.root, head(name))
  page.once(async () => {
    const tool = await page.get(`tools/${segment(name)}`)
    const attempt = trial(page, tool)
    const span = spanned(page, async span => {
      const series = await page.get('series', { span, tool: name })
      calls.draw(callsSeries(series))
      latency.draw(latencySeries(series))
      quiet.hidden = series.points.some(([calls]) => calls > 0)
      charts.hidden = !quiet.hidden
      return series
    })
    page.show(
      h('p', { class: 'back' }, h('a', { href: '#/tools' }, t('nav.tools'))),
      head(code(tool.name), hints(tool), span),
      tool.description && h('p', { class: 'lead' }, tool.description),
      charts, quiet,
      h('div', { class: 'pair loose' }, attempt.form, h('div', { class: 'stack' }, attempt.result, about(tool))))
  })
}

function about(tool) {
  return card(t('tools.about'),
    facts([
      [tool.upstream ? t('column.upstream') : t('column.plugin'), h('a', { href: tool.upstream ? '#/connections' : `#/plugins/${segment(tool.plugin)}` }, tool.plugin)],
      [t('tools.title'), tool.title],
    ]),
    h('p', {}, h('a', { href: `#/audit?tool=${segment(tool.name)}` }, t('calls.audit'))),
    h('details', {}, h('summary', {}, t('tools.input')), listing(json(tool.inputSchema), t('tools.input'))),
    tool.outputSchema && h('details', {}, h('summary', {}, t('tools.output')), listing(json(tool.outputSchema), t('tools.output'))))
}

/** trial is the form that calls the tool, with the place for its result. */
function trial(page, tool) {
  let form, running
  let asJSON = false
  const fields = h('div')
  const result = h('div', { class: 'result', 'aria-live': 'polite' })
  const call = h('button', { type: 'submit', class: 'primary' }, t('tools.call'))
  const stop = h('button', { type: 'button', hidden: true, onclick: () => running?.abort() }, t('tools.stop'))
  const change = h('button', { type: 'button', class: 'small' })
  const use = values => {
    form = asJSON ? jsonForm(values) : schemaForm(tool.inputSchema, values)
    put(fields, form.element)
    put(change, t(asJSON ? 'form.toFields' : 'form.toJSON'))
  }
  change.addEventListener('click', () => {
    const values = form.read() ?? (asJSON ? undefined : {})
    if (values === undefined) return
    asJSON = !asJSON
    use(values)
  })
  const clear = h('button', { type: 'button', onclick: () => {
    use(asJSON ? {} : undefined)
    put(result)
  } }, t('tools.clear'))
  use()
  const submit = async event => {
    event.preventDefault()
    const input = form.read()
    if (input === undefined || running || !may(page.session, 'admin')) return
    running = new AbortController()
    stop.hidden = false
    const questions = h('div', { class: 'questions' })
    put(result, h('p', { class: 'hint' }, t('tools.running')), questions)
    const unwatch = watchQuestions(page, tool, questions)
    try {
      put(result, outcome(await post(`tools/${segment(tool.name)}/call`, { arguments: input }, running.signal)))
    } catch (error) {
      put(result, error.name === 'AbortError' ? h('p', { class: 'hint' }, t('tools.stopped')) : problem(error))
    }
    unwatch()
    running = undefined
    stop.hidden = true
    result.scrollIntoView({ block: 'nearest' })
  }
  page.signal.addEventListener('abort', () => running?.abort())
  return {
    result,
    form: card(t('tools.try'), h('p', { class: 'hint' }, t('tools.tryAbout')),
      h('form', { onsubmit: submit, novalidate: true }, fields,
        h('div', { class: 'actions' }, guarded(page.session, 'admin', call), stop, clear, change))),
  }
}

/** watchQuestions shows the pending questions of calls made here, until the returned function is called. */
function watchQuestions(page, tool, list) {
  const cards = new Map()
  const look = async () => {
    const { items } = await page.get('approvals').catch(() => ({ items: [] })) // the result says what is wrong
    for (const question of items) {
      const { caller } = question
      if (cards.has(question.id) || question.tool !== tool.name || caller.frontend !== 'console' || caller.user !== page.session.user.name) continue
      cards.set(question.id, questionCard(page, question, look))
      list.append(cards.get(question.id).element)
    }
  }
  const looking = setInterval(look, 2000)
  const ticking = setInterval(() => cards.forEach(card => card.tick()), 250)
  live.addEventListener('approvals', look)
  return () => {
    clearInterval(looking)
    clearInterval(ticking)
    live.removeEventListener('approvals', look)
  }
}

function outcome(result) {
  return [
    h('p', { class: 'outcome' }, h('strong', {}, t('result.text')), badge('outcome', result.outcome), took(result.durationMs)),
    result.cut && h('p', { class: 'notice' }, t('result.cut')),
    resultView({ content: result.content, structuredContent: result.structured }),
  ]
}
