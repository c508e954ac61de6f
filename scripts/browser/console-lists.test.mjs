// Lists of the console: filters and order are in the address, heads stay in view and sort, what is empty says why, and what is not there yet is not
// said to be empty. Over the fake.
import assert from 'node:assert/strict'
import { describe } from 'node:test'

import { answers } from './answers.mjs'
import { opened } from './opened.mjs'

const names = page => page.locator('tbody tr > th:first-child').evaluateAll(cells => cells.map(cell => (cell.querySelector('strong, code') ?? cell).textContent))
const hash = page => new URL(page.url()).hash

describe('the address', () => {
  const found = { plugins: ['q=FILES+folders&state=pending', ['files']], tools: ['q=file', ['delete_file', 'file_read', 'file_write']],
    errors: ['q=weather&side=limit', ['get_weather']], sessions: ['q=ken', ['Visual Studio Code']], tokens: ['state=revoked', ['old-agent']], configuration: ['q=http.address', ['http.address']] }
  for (const [view, [query, wanted]] of Object.entries(found)) {
    opened(`has the filters of ${view}`, { hash: `#/${view}?${query}` }, async page => {
      await page.locator('tbody tr').first().waitFor()
      assert.deepEqual((await names(page)).slice(0, wanted.length), wanted)
    })
  }
  opened('follows filters, order and time, and is found again after "back"', { hash: '#/tools?state=%3Cb%3E', more: { 'tools/file_write': answers()['tools/get_weather'] } }, async page => {
    await page.locator('tbody tr').nth(6).waitFor()
    await page.getByRole('searchbox').fill('file')
    await page.getByRole('button', { name: 'Calls', exact: true }).click()
    await page.getByLabel('Time that is shown').selectOption('day')
    assert.equal(hash(page), '#/tools?state=%3Cb%3E&q=file&sort=-calls&span=day')
    assert.deepEqual(await names(page), ['file_read', 'file_write', 'delete_file'])
    await page.locator('tbody tr').nth(1).click()
    await page.locator('.back').waitFor()
    await page.goBack()
    await page.locator('.tools tbody tr').nth(2).waitFor()
    assert.deepEqual(await names(page), ['file_read', 'file_write', 'delete_file'])
    assert.equal(await page.getByRole('searchbox').inputValue(), 'file')
    await page.getByLabel('Language').selectOption('ja')
    await page.getByRole('columnheader', { name: '呼び出し' }).and(page.locator('[aria-sort="descending"]')).waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), 'file')
  })
  opened('that somebody goes to is not replaced by that of a view that is left', {}, async page => {
    await page.getByLabel('Time that is shown').waitFor()
    await page.evaluate(() => {
      location.hash = '#/tools'
      const span = document.querySelector('.span select') // "hashchange" comes only after this script
      span.value = 'day'
      span.dispatchEvent(new Event('change'))
    })
    await page.locator('.tools tbody tr').first().waitFor()
    assert.equal(hash(page), '#/tools?span=day')
  })
  opened('that somebody goes to while a view loads is not replaced by that of the view', {}, async page => {
    await page.getByLabel('Time that is shown').waitFor()
    await page.evaluate(async () => {
      location.hash = '#/tools'
      await new Promise(resolve => addEventListener('hashchange', resolve, { once: true }))
      // The page sets the title when the view is loaded, right before it shows it.
      Object.defineProperty(document, 'title', { configurable: true, set() {
        delete document.title
        location.hash = '#/plugins'
      } })
      location.hash = '#/'
    })
    await page.locator('.plugins tbody tr').first().waitFor()
    assert.equal(hash(page), '#/plugins')
  })
  opened('with a choice that is none shows all', { hash: '#/plugins?state=nonsense&sort=-nonsense' }, async page => {
    await page.locator('tbody tr').nth(4).waitFor()
    assert.equal(await page.getByLabel('State').inputValue(), '')
  })
})

describe('tables', () => {
  opened('sort by their heads: one way, the other way, not at all; what has no value comes last', { hash: '#/tools' }, async page => {
    const head = page.getByRole('columnheader', { name: 'p95' })
    await page.locator('tbody tr').nth(6).waitFor()
    const byName = await names(page)
    await head.getByRole('button').click()
    assert.equal(await head.getAttribute('aria-sort'), 'descending')
    assert.deepEqual([(await names(page))[0], (await names(page)).at(-1)], ['shell_exec', 'delete_file'])
    await page.keyboard.press('Enter') // the head has the focus
    assert.equal(await head.getAttribute('aria-sort'), 'ascending')
    assert.deepEqual([(await names(page))[0], (await names(page)).at(-1)], ['file_read', 'delete_file'])
    await page.keyboard.press('Enter')
    assert.equal(await head.getAttribute('aria-sort'), null)
    assert.deepEqual(await names(page), byName)
    assert.equal(hash(page), '#/tools')
  })
  const many = { items: Array.from({ length: 120 }, (_, i) => ({ name: `tool_${i}`, title: 'One of many', plugin: 'many' })) }
  for (const size of ['desktop', 'phone']) {
    opened(`have their heads in view: ${size}`, { hash: '#/tools', size, more: { tools: many } }, async page => {
      await page.locator('tbody tr').nth(119).scrollIntoViewIfNeeded()
      const { y } = await page.locator('thead th').first().boundingBox()
      const bar = size === 'phone' ? (await page.locator('.bar').boundingBox()).height : 0
      assert.ok(Math.abs(y - bar) <= 1, `the head is at ${y}, below a bar of ${bar}`)
    })
  }
  opened('that are wider than the page are scrolled sideways', { hash: '#/tools', size: 'phone', more: { tools: { items: [{ name: `tool_${'x'.repeat(60)}`, plugin: 'weather' }] } } }, async page => {
    await page.locator('tbody tr').first().waitFor()
    const { wide, scrolls } = await page.locator('.rows').evaluate(e => ({ wide: e.scrollWidth > e.clientWidth, scrolls: getComputedStyle(e).overflowX }))
    assert.equal(scrolls, wide ? 'auto' : 'clip')
  })
  let answer
  const asked = new Promise(resolve => { answer = resolve })
  opened('are not said to be empty before the answer is there, and then with the next step', { hash: '#/plugins', more: { plugins: () => asked } }, async page => {
    await page.locator('.loading[aria-busy]').waitFor()
    assert.equal(await page.getByText('No plugins.').isVisible(), false)
    answer({ items: [] })
    await page.getByText('No plugins.').waitFor()
    await page.getByText('hako plugin add FILE').waitFor()
    assert.equal(await page.locator('.loading').count(), 0)
  })
  opened('that the filters leave empty say so, and clear them', { hash: '#/tokens?q=nobody&state=valid' }, async page => {
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await page.locator('tbody tr').nth(3).waitFor()
    assert.equal(hash(page), '#/tokens')
  })
  opened('say how long ago it is now, also in rows that stay the same', { hash: '#/sessions' }, async page => {
    await page.clock.install()
    await page.reload()
    const seen = page.locator('time.since').first()
    const before = await seen.textContent()
    await page.clock.runFor(30 * 60_000)
    await page.waitForFunction(before => document.querySelector('time.since').textContent !== before, before)
    assert.match(await seen.getAttribute('title'), /^\d{4}-\d\d-\d\dT/)
  })
})

describe('the overview', () => {
  let answer
  const known = new Promise(resolve => { answer = resolve })
  opened('has charts once it is known whether anything stands above them', { more: { overview: async () => (await known, answers().overview) } }, async page => {
    await page.locator('.stat .sparkline').first().waitFor() // the figures of the charts are there
    assert.equal(await page.locator('.chart').count(), 0)
    answer()
    await page.locator('.attention').waitFor()
    await page.locator('.chart .legend li').first().waitFor()
    const [attention, chart] = [await page.locator('.attention').boundingBox(), await page.locator('.chart').first().boundingBox()]
    assert.ok(attention.y + attention.height <= chart.y)
  })
})
