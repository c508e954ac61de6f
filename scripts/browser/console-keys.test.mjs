// The keyboard and the clipboard in the console: the menu that leads everywhere, keys for views and searches, and copies of IDs. Over the stand-in.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { answers, session } from './answers.mjs'
import { accessible, clean, narrow, shoot, startChromium } from './chromium.mjs'
import { startStandIn } from './stand-in.mjs'

let chromium
before(async () => { chromium = await startChromium() })
after(() => chromium.close())

/** opened runs work on a page of a host with other answers, and cleans up. */
function opened(name, { hash = '', more = {}, ...options }, work) {
  test(name, async () => {
    const host = await startStandIn({ ...answers(session()), ...more })
    try {
      const page = await chromium.open(host.url + hash, options)
      await page.locator('main h1').waitFor()
      await work(page, host)
      await clean(page)
    } finally {
      await host.stop()
    }
  })
}

const at = (page, hash) => page.waitForFunction(hash => location.hash === hash, hash)

opened('the menu leads to a tool, a call and a search by the keyboard', { hash: '#/plugins' }, async page => {
  const text = page.getByRole('combobox', { name: 'A view, plugin, tool or call ID' })
  const go = async (words, ...keys) => {
    await page.keyboard.press('Control+k')
    await text.fill(words)
    await page.locator('.found li').first().waitFor()
    for (const key of keys) await page.keyboard.press(key)
  }
  await go('file')
  await page.getByRole('option', { name: 'file_write Tool' }).waitFor()
  assert.equal(await page.locator('.found [aria-selected=true]').textContent(), 'files Plugin')
  assert.equal(await text.getAttribute('aria-activedescendant'), await page.locator('.found [aria-selected=true]').getAttribute('id'))
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await at(page, '#/tools/file_read')
  assert.equal(await page.locator('dialog').count(), 0)
  await go('call_DONE', 'Enter')
  await at(page, '#/calls/call_DONE')
  await page.locator('.steps').waitFor()
  await go('a&b <i>', 'Enter')
  await at(page, '#/audit?text=a%26b%20%3Ci%3E')
  assert.equal(await page.getByLabel('Text').inputValue(), 'a&b <i>')
  await go('aud', 'Escape')
  assert.equal(await page.locator('dialog').count(), 0)
})
opened('the menu is there while plugins and tools cannot be listed', { more: { plugins: { status: 500, error: { code: 'internal', text: 'no' } } } }, async page => {
  await page.getByRole('button', { name: 'Go to …' }).click()
  await page.getByRole('option', { name: 'Sessions View' }).click()
  await at(page, '#/sessions')
})
opened('keys lead to views and to the search, but not from a field', { hash: '#/tools' }, async page => {
  const text = page.getByRole('searchbox')
  await text.waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('gp/?')
  assert.equal(await text.inputValue(), 'gp/?')
  assert.equal(await page.locator('dialog').count(), 0)
  await text.blur()
  await page.keyboard.press('p') // without g before
  await page.keyboard.press('g')
  await page.keyboard.press('p')
  await at(page, '#/plugins')
})
opened('keys of one letter can be turned off, the menu not', {}, async page => {
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys' }).getByRole('checkbox').uncheck()
  await page.keyboard.press('Escape')
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.keyboard.press('?')
  await page.reload()
  await page.locator('main h1').waitFor()
  await page.keyboard.press('?')
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Go to …' }).waitFor()
  assert.equal(await page.locator('dialog').count(), 1)
  assert.doesNotMatch(page.url(), /tools/)
})
for (const [size, language, theme] of [['desktop', 'en', 'dark'], ['phone', 'ja', 'light']]) {
  opened(`the menu and the keys fit and can be used by all: ${size}`, { size, language, theme }, async page => {
    for (const [key, shown, name] of [['Control+k', '.found', 'menu'], ['?', '.keys', 'keys']]) {
      await page.keyboard.press(key)
      await page.locator(shown).waitFor()
      await narrow(page, name)
      await accessible(page, name)
      await shoot(page, `console-${name}-${size}-${language}-${theme}`)
      await page.keyboard.press('Escape')
      await page.locator(shown).waitFor({ state: 'hidden' }) // until then keys are typed into its search
    }
  })
}
opened('an ID is copied whole, and it is said', { hash: '#/calls/call_DONE', permissions: ['clipboard-read', 'clipboard-write'] }, async page => {
  const trace = page.locator('.facts div').filter({ hasText: 'Trace' })
  await trace.getByRole('button', { name: 'Copy' }).click()
  await trace.getByRole('status').getByText('Copied.').waitFor()
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '4bf92f3577b34da6a3ce929d0e0e4736')
  await page.locator('.listing').first().getByRole('button', { name: 'Copy' }).click()
  await page.locator('.listing').first().getByText('Copied.').waitFor()
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /panic: runtime error/)
})
