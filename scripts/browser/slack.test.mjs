// The page of hako-dev slack: two people, a request that one of them makes and the other has to agree to, on a desktop and on a phone.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'

import { accessible, clean, narrow, shoot, startChromium } from './chromium.mjs'
import { startSlack } from './slack.mjs'

const aki = 'U0000000A1' // one of the leads, reads Japanese
const ken = 'U0000000K1'

describe('hako-dev slack', () => {
  let chromium, slack
  before(async () => { [chromium, slack] = await Promise.all([startChromium(), startSlack()]) })
  after(async () => { await chromium.close(); await slack.stop() })

  async function as(person, options) {
    const page = await chromium.open(slack.url, options)
    await page.locator('#person').selectOption(person)
    await page.locator(`#person option[value="${person}"]:checked`).waitFor({ state: 'attached' })
    await page.waitForFunction(id => location.search.includes(id), person)
    return page
  }
  const say = async (page, text, where = '#compose') => {
    await page.locator(`${where} textarea`).fill(text)
    await page.keyboard.press('Enter')
  }
  const replies = page => page.locator('#replies')
  // Of two questions the first may still be there, without an answer, when the second comes.
  const approve = (page, tool) => replies(page).locator('article').filter({ hasText: tool }).getByRole('button', { name: 'Approve' })

  test('nobody comes in without the token', async () => {
    const page = await chromium.open(slack.url.split('?')[0])
    assert.match(await page.textContent('body'), /with its token/)
    await page.context().close()
  })

  test('a question is answered in its thread, and feedback given', async () => {
    const page = await as(ken)
    await page.getByRole('button', { name: '@hako What is the weather in Tokyo?' }).click()
    await replies(page).getByText('Weather forecast for Tokyo').first().waitFor()
    const good = replies(page).getByRole('button', { name: 'Good answer' })
    await good.click()
    assert.equal(await replies(page).locator('.card.complete').count(), 1)
    await replies(page).getByText('Thank you for the feedback.').waitFor()
    await accessible(page, 'an answer')
    await shoot(page, 'slack-answer')
    await clean(page)
  })

  test('what one asks for, another agrees to', async () => {
    const asks = await as(ken)
    await say(asks, '@hako Put the overtime of May into the sheet and tell Aki')
    await approve(asks, 'write_rows_to_google_sheet').waitFor()
    await asks.getByText('hako waits for somebody\'s answer.').waitFor()
    await approve(asks, 'write_rows_to_google_sheet').click()
    await approve(asks, 'send_slack_dm').click()
    await replies(asks).getByText('You may not answer this question.').waitFor()
    await accessible(asks, 'a question')
    await shoot(asks, 'slack-question')

    const agrees = await as(aki, { size: 'phone', theme: 'dark', language: 'ja' })
    assert.equal(await agrees.locator('html').getAttribute('lang'), 'ja')
    await shoot(agrees, 'slack-phone-channel')
    await agrees.locator('#messages').getByRole('button', { name: 'スレッドを開く' }).last().click()
    await narrow(agrees, 'a thread on a phone')
    await accessible(agrees, 'a thread on a phone')
    await shoot(agrees, 'slack-phone-question')
    await approve(agrees, 'send_slack_dm').click()
    await replies(asks).getByText('Aki knows of it on Slack').first().waitFor()
    await replies(asks).getByRole('button', { name: 'Good answer' }).waitFor()
    await shoot(asks, 'slack-done')
    await agrees.getByRole('button', { name: '閉じる' }).click()
    await agrees.getByRole('button', { name: 'hako', exact: true }).click()
    await agrees.locator('#messages').getByText('The overtime of May is in the spreadsheet.').waitFor()
    await shoot(agrees, 'slack-phone-message')
    await clean(agrees)
    await clean(asks)
  })

  test('an answer is stopped, its question goes with it', async () => {
    const page = await as(aki)
    await say(page, '@hako 5月の残業をまとめて')
    await replies(page).getByRole('button', { name: '許可' }).waitFor()
    await page.locator('#session').getByRole('button', { name: '停止' }).click()
    await replies(page).getByText('さんが停止しました').waitFor()
    await replies(page).getByText('回答は不要になりました').waitFor()
    assert.equal(await replies(page).getByRole('button', { name: '許可' }).count(), 0)
    await clean(page)
  })

  test('files go up and come down, commands answer to one person, hostile text stays text', async () => {
    const page = await as(ken)
    await page.locator('#compose input[type=file]').setInputFiles({ name: '<b>report</b>.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') })
    await say(page, '@hako look <img src=x onerror=alert(1)> [here](javascript:alert(1)) `code`')
    const link = page.locator('#messages').getByRole('link', { name: '<b>report</b>.csv' })
    await link.waitFor()
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
    assert.equal(await readFile(await download.path(), 'utf8'), 'a,b\n1,2\n')
    assert.equal(await page.locator('#messages img, #messages a[href^="javascript"]').count(), 0)
    await page.locator('#close').click()
    await say(page, '/hako tools')
    await page.locator('#messages').getByText('Only visible to you').first().waitFor()
    const other = await as(aki)
    await other.locator('#messages').getByText('look').first().waitFor()
    assert.equal(await other.locator('#messages').getByText('Tools that you may use').count(), 0)
    await clean(other)
    await clean(page)
  })
})
