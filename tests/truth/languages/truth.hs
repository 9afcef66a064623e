-- Haskell: arithmetic, and a map of words.
module Main (main) where

import Control.Monad (foldM)
import Data.Bits ((.&.))
import Data.IORef
import qualified Data.Map.Strict as Map
import System.CPUTime (getCPUTime)
import Text.Printf (printf)

now :: IO Double
now = (\picoseconds -> fromIntegral picoseconds / 1e9) <$> getCPUTime

leaf :: Int -> Int
leaf start = go 0 start
  where
    go :: Int -> Int -> Int
    go 200000 x = x
    go i x = go (i + 1) ((x * 77 + i) .&. 65535)
{-# NOINLINE leaf #-}

counting :: Int -> Int
counting start = Map.size (foldr (\i -> Map.insertWith (+) (i * 7919 `mod` 3001) i) Map.empty [start .. start + 1000])
{-# NOINLINE counting #-}

spend :: Double -> IORef Int -> (Int -> Int) -> IO Double
spend ms sink call = do
  start <- now
  let loop = do
        modifyIORef' sink call
        at <- now
        if at - start < ms then loop else return (at - start)
  loop
{-# NOINLINE spend #-}

main :: IO ()
main = do
  sink <- newIORef 1
  (first, second) <- foldM (\(a, b) _ -> do
    x <- spend 80 sink leaf
    y <- spend 50 sink counting
    return (a + x, b + y)) (0, 0) [1 .. 8 :: Int]
  printf "leaf %.2f\ncounting %.2f\n" (100 * first / (first + second)) (100 * second / (first + second) :: Double)
