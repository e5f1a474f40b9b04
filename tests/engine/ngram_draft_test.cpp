#include "engine/ngram_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> drafts(std::vector<TokenId> ids, Speculation options = {4, 2, 3}, int most = 100) {
  const size_t length = ids.size();
  const int count = NgramDraft(options).propose(ids, most);
  EXPECT_EQ(ids.size(), length + static_cast<size_t>(count));
  return {ids.begin() + static_cast<std::ptrdiff_t>(length), ids.end()};
}

TEST(NgramDraft, WhatFollowedBeforeFollowsAgain) {
  EXPECT_THAT(drafts({1, 2, 3, 4, 5, 6, 7, 1, 2}), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(drafts({1, 2, 3, 4, 5, 6, 7, 1, 2}, {2, 2, 3}), ElementsAre(3, 4));
  EXPECT_THAT(drafts({1, 2, 3, 4, 5, 6, 7, 1, 2}, {4, 2, 3}, 1), ElementsAre(3));
}

TEST(NgramDraft, WithoutAMatchThereIsNoGuess) {
  EXPECT_THAT(drafts({1, 2, 3, 4, 5}), IsEmpty());
  EXPECT_THAT(drafts({9, 2, 3, 1, 2}), IsEmpty()) << "one token is too short a match";
  EXPECT_THAT(drafts({9, 2, 3, 1, 2}, {4, 1, 3}), ElementsAre(3, 1, 2, 3));
  EXPECT_THAT(drafts({}), IsEmpty());
  EXPECT_THAT(drafts({1}), IsEmpty());
  EXPECT_THAT(drafts({1, 2, 3, 4, 1, 2}, {4, 2, 3}, 0), IsEmpty());
}

TEST(NgramDraft, TheLongerMatchWinsThenTheLater) {
  EXPECT_THAT(drafts({7, 1, 2, 30, 8, 1, 2, 31, 7, 1, 2}, {1, 2, 3}), ElementsAre(30));
  EXPECT_THAT(drafts({1, 2, 30, 8, 1, 2, 31, 7, 1, 2}, {1, 2, 3}), ElementsAre(31));
}

TEST(NgramDraft, ARepetitionGoesOn) { EXPECT_THAT(drafts({5, 6, 5, 6, 5, 6}), ElementsAre(5, 6, 5, 6)); }

TEST(NgramDraft, GuessesFewerAfterWrongOnesAndMoreAfterRightOnes) {
  NgramDraft draft({8, 1, 2});
  const auto count = [&] {
    std::vector<TokenId> ids = {1, 1, 1};
    return draft.propose(ids, 100);
  };
  EXPECT_EQ(count(), 8);
  draft.learn(8, 0);
  EXPECT_EQ(count(), 1);
  draft.learn(0, 0);
  EXPECT_EQ(count(), 1);
  draft.learn(1, 1);
  EXPECT_EQ(count(), 2);
  draft.learn(2, 2);
  draft.learn(4, 4);
  draft.learn(8, 8);
  EXPECT_EQ(count(), 8);
  draft.learn(8, 3);
  EXPECT_EQ(count(), 4);
}

}  // namespace
}  // namespace qwench
